"""Environments for TorchRL. Needs the extra `torchrl`: `pip install 'goodput-gym[torchrl]'`."""

import os
from typing import Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from tensordict import TensorDict, TensorDictBase
from torchrl.data import Binary, Bounded, Categorical, Composite, Unbounded
from torchrl.envs import EnvBase

from goodput_gym._vector import ClusterVectorEnv

__all__ = ["ClusterTorchEnv"]


class ClusterTorchEnv(EnvBase):  # type: ignore[misc,unused-ignore]
    """`ClusterVectorEnv` as an environment of TorchRL with the batch size `(num_envs,)`.

    | key | content | dtype and shape |
    |---|---|---|
    | `observation` | numbers as `envs.features` names them | float32 `(num_envs, features)` |
    | `action_mask` | True where an action is allowed | bool `(num_envs, actions)` |
    | `action` | number of an action | int64 `(num_envs,)` |
    | `reward` | as of `ClusterEnv` | float32 `(num_envs, 1)` |
    | `elapsed_secs` | simulated seconds that the step took | float32 `(num_envs, 1)` |
    | `done`, `terminated`, `truncated` | ends | bool `(num_envs, 1)` |

    Arguments are those of `ClusterVectorEnv` without `autoreset_mode`, `observation` and `copy`: TorchRL resets
    environments that ended by itself. A policy takes the mask with `torchrl.modules.MaskedCategorical`, and the
    environment alone with the transform `ActionMask`.
    """

    def __init__(self, config: str | os.PathLike[str] = "quickstart", num_envs: int = 1, **options: Any) -> None:
        for fixed in ("autoreset_mode", "observation", "copy"):
            if fixed in options:
                raise TypeError(f"{fixed} is fixed: TorchRL resets environments by itself, and takes flat copies")
        super().__init__(device="cpu", batch_size=[num_envs])
        self.envs = ClusterVectorEnv(config, num_envs, autoreset_mode=AutoresetMode.DISABLED, **options)
        self._seed_next: int | None = None
        box, actions = self.envs.single_observation_space, len(self.envs.action_names)
        shape = (num_envs,)
        self.observation_spec = Composite(
            observation=Bounded(
                torch.from_numpy(box.low).expand(num_envs, -1),  # type: ignore[attr-defined]
                torch.from_numpy(box.high).expand(num_envs, -1),  # type: ignore[attr-defined]
                shape=(num_envs, len(self.envs.features)),
                dtype=torch.float32,
            ),
            action_mask=Binary(n=actions, shape=(num_envs, actions), dtype=torch.bool),
            elapsed_secs=Unbounded(shape=(num_envs, 1), dtype=torch.float32),
            shape=shape,
        )
        self.action_spec = Categorical(actions, shape=shape, dtype=torch.int64)
        self.reward_spec = Unbounded(shape=(num_envs, 1), dtype=torch.float32)
        flag = Categorical(2, shape=(num_envs, 1), dtype=torch.bool)
        self.done_spec = Composite(done=flag, terminated=flag.clone(), truncated=flag.clone(), shape=shape)

    def _reset(self, tensordict: TensorDictBase | None = None, **_: Any) -> TensorDict:
        chosen = None if tensordict is None else tensordict.get("_reset", None)
        options = None if chosen is None else {"reset_mask": chosen.reshape(self.envs.num_envs).numpy()}
        observations, _infos = self.envs.reset(seed=self._seed_next, options=options)
        self._seed_next = None
        return self._out(observations, np.zeros(self.envs.num_envs), {})

    def _step(self, tensordict: TensorDictBase) -> TensorDict:
        observations, rewards, terminated, truncated, infos = self.envs.step(tensordict["action"].numpy())
        ends = {"terminated": terminated, "truncated": truncated, "done": terminated | truncated}
        more = {name: torch.from_numpy(flags)[:, None] for name, flags in ends.items()}
        more["reward"] = torch.from_numpy(rewards).float()[:, None]
        return self._out(observations, infos["elapsed_secs"], more)

    def _out(self, observations: Any, elapsed: Any, more: dict[str, torch.Tensor]) -> TensorDict:
        return TensorDict(
            {
                "observation": torch.from_numpy(observations),
                "action_mask": torch.from_numpy(self.envs.action_masks()),
                "elapsed_secs": torch.from_numpy(elapsed).float()[:, None],
                **more,
            },
            batch_size=self.batch_size,
        )

    def _set_seed(self, seed: int | None) -> None:
        self._seed_next = seed
