"""Environments for Stable-Baselines3 and sb3-contrib. Needs the extra `sb3`: `pip install 'goodput-gym[sb3]'`."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from goodput_gym._vector import ClusterVectorEnv

__all__ = ["ClusterVecEnv"]


class ClusterVecEnv(VecEnv):  # type: ignore[misc,unused-ignore]
    """`ClusterVectorEnv` in the form in which Stable-Baselines3 takes several environments.

    Arguments are those of `ClusterVectorEnv` without `autoreset_mode`, which is SAME_STEP, and `copy`, which is True.
    `MaskablePPO` finds the masks by
    `action_masks()`. Infos of episodes that ended have `terminal_observation`, `TimeLimit.truncated`, `jct_mean_secs`
    (seconds) and `episode` (`r`: sum of rewards, `l`: actions), as Stable-Baselines3's `Monitor` writes them.

    Stable-Baselines3 discounts by decision and not by time. Give `half_life_secs` with `present_value=True`, and
    `gamma=1` to the learner, for returns that are discounted by time.
    """

    def __init__(self, config: str | os.PathLike[str] = "quickstart", num_envs: int = 1, **options: Any) -> None:
        for fixed in ("autoreset_mode", "copy"):
            if fixed in options:
                raise TypeError(f"{fixed} is fixed: Stable-Baselines3 takes copies under SAME_STEP")
        self.envs = ClusterVectorEnv(config, num_envs, **options)
        self._masks: NDArray[np.bool_] | None = None
        self._seed_next: int | None = None
        self._returns, self._lengths = np.zeros(num_envs), np.zeros(num_envs, dtype=np.int64)
        super().__init__(num_envs, self.envs.single_observation_space, self.envs.single_action_space)

    def reset(self) -> Any:
        """Begins episodes in all environments, and returns their observations."""
        observations, _ = self.envs.reset(seed=self._seed_next)
        self._seed_next, self._masks = None, self.envs.action_masks()
        self._returns[:], self._lengths[:] = 0.0, 0
        return observations

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Sets the master seed of the next `reset`."""
        self._seed_next = seed
        return [seed] * self.num_envs

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keeps the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Steps all environments."""
        observations, rewards, terminated, truncated, infos = self.envs.step(self._actions)
        self._masks = self.envs.action_masks()
        self._returns += rewards
        self._lengths += 1
        ended = terminated | truncated
        notes: list[dict[str, Any]] = [{"elapsed_secs": float(secs)} for secs in infos["elapsed_secs"]]
        for env in np.flatnonzero(ended):
            notes[env] |= {
                "terminal_observation": infos["final_obs"][env],
                "TimeLimit.truncated": bool(truncated[env]),
                "jct_mean_secs": float(infos["jct_mean_secs"][env]),
                "episode": {"r": float(self._returns[env]), "l": int(self._lengths[env])},
            }
            self._returns[env], self._lengths[env] = 0.0, 0
        return observations, rewards.astype(np.float32), ended, notes

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Calls a method of each environment: `action_masks`."""
        if method_name != "action_masks" or self._masks is None:
            raise AttributeError(f"no method {method_name!r} of each environment; there is action_masks, after reset")
        return [self._masks[env] for env in self._get_indices(indices)]

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute of each environment."""
        if attr_name == "action_masks":
            value: Any = self.envs.action_masks
        else:
            value = getattr(self.envs, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Is refused: the environments have no attributes to set."""
        raise AttributeError(f"environments of goodput have no attribute {attr_name!r} to set")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """False for every environment."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> list[Any]:
        """Pictures of the environments where `render_mode` is `"rgb_array"`, uint8 `(height, width, 3)`."""
        drawn = self.envs.render() if self.envs.render_mode == "rgb_array" else None
        return [None] * self.num_envs if drawn is None else list(drawn)

    def close(self) -> None:
        """Frees nothing: the environments live in this process."""
