"""Environments that step together, a `gymnasium.vector.VectorEnv`."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from goodput_gym import _config, _gantt
from goodput_gym._core import Environments
from goodput_gym._spaces import Described, master_seed, refuse_options, spaces, whole_actions

_AUTORESET = {
    AutoresetMode.SAME_STEP: "same-step",
    AutoresetMode.NEXT_STEP: "next-step",
    AutoresetMode.DISABLED: "disabled",
}


class ClusterVectorEnv(Described, VectorEnv):
    """`num_envs` environments of one experiment in this process, on `threads` threads of Rust.

    Observations, actions, rewards and ends are those of `ClusterEnv`, one row an environment. Python's lock is released
    while the environments step.

    `infos` has arrays of `num_envs` rows: `action_mask` (int8, `(num_envs, actions)`), `elapsed_secs` (float64,
    simulated seconds), `discount` where `half_life_secs` is given, `jct_mean_secs` (float64, mean job completion time
    in seconds of episodes that ended in this step, NaN elsewhere), `forbidden` (bool, actions that were replaced) and,
    under SAME_STEP, `final_obs` and `final_info` of episodes that ended. The keys of `final_info` are those of the info
    of `ClusterEnv`. As Gymnasium has it, `_KEY` says in which rows `KEY` is set.

    Parameters
    ----------
    config, sets, split, on_forbidden, observation, half_life_secs, present_value, round_actions, render_mode
        As of `ClusterEnv`.
    num_envs
        Number of environments.
    seed
        Master seed of the first `reset` without a seed; None draws one, so that two processes play different episodes.
        Environment `i` plays the stream `first + i` of the master seed.
    first
        Stream of the first environment: with `first = worker * num_envs` the workers of one seed never meet.
    threads
        Threads that step. Results do not depend on it.
    autoreset_mode
        SAME_STEP (default), NEXT_STEP or DISABLED (`reset(options={"reset_mask": ...})`), or the name of one.
    copy
        False lends the arrays themselves, read-only, and the next step overwrites them.
    """

    def __init__(
        self,
        config: str | os.PathLike[str] = "quickstart",
        num_envs: int = 1,
        *,
        sets: dict[str, object] | None = None,
        seed: int | None = None,
        first: int = 0,
        split: str = "training",
        threads: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        on_forbidden: str = "raise",
        observation: str = "flat",
        copy: bool = True,
        half_life_secs: float | None = None,
        present_value: bool = False,
        round_actions: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        mode = dict(AutoresetMode.__members__).get(str(autoreset_mode)) or AutoresetMode(autoreset_mode)
        _gantt.check_mode(render_mode)
        core = Environments(
            *_config.read(config),
            _config.sets(sets),
            num_envs,
            threads,
            split,
            _AUTORESET[mode],
            on_forbidden,
            half_life_secs,
            present_value,
            _gantt.is_picture(render_mode),
            round_actions,
        )
        self._describe(core)
        self.metadata = {"autoreset_mode": mode, "render_modes": list(_gantt.MODES), "render_fps": 1}
        self.num_envs, self.render_mode = num_envs, render_mode
        self.single_observation_space, self.single_action_space = spaces(self, observation)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._same_step, self._half_life = mode == AutoresetMode.SAME_STEP, half_life_secs
        self._copy, self._masked = copy, observation == "masked"
        self._seed: int | None = seed
        self._first, self._begun = first, np.zeros(num_envs, bool)
        self._waiting = np.zeros(len(self.action_names), np.int8)
        self._waiting[-1] = 1
        self._lend()

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins episodes in all environments, or in those of `options["reset_mask"]` (bool, `(num_envs,)`).

        An integer seed is a master seed. A sequence has one for each environment, which then plays as a `ClusterEnv` of
        that seed does. None in a sequence leaves an environment in its stream. Without a seed, the next episodes follow.
        """
        refuse_options(options, ("reset_mask",))
        which = (options or {}).get("reset_mask")
        chosen = np.ones(self.num_envs, bool) if which is None else np.asarray(which, bool)
        if chosen.shape != (self.num_envs,):
            raise ValueError(f"reset_mask has the shape {chosen.shape}, expected ({self.num_envs},)")
        begins = self._streams(seed)
        super().reset(seed=begins[0][0] if seed is not None and begins[0] is not None else None)
        for env in map(int, np.flatnonzero(chosen)):
            if (stream := begins[env]) is not None:
                self._core.seed(env, *stream)
        self._begun |= chosen
        self._core.reset(chosen.tolist())
        mask = self._out(self._mask)
        return self._observe(mask), self._infos({"action_mask": mask})

    def _streams(self, seed: Any) -> list[tuple[int, int] | None]:
        """Master seed and number of the stream that each environment begins; None where the next episode follows."""
        rows = range(self.num_envs)
        if seed is not None and np.ndim(seed) == 0:
            self._seed = master_seed(seed)
            return [(self._seed, self._first + env) for env in rows]
        given = [None] * self.num_envs if seed is None else list(seed)
        if len(given) != self.num_envs:
            raise ValueError(f"{len(given)} seeds, expected {self.num_envs}: one for each environment")
        master = self._seed = master_seed(self._seed)
        own = [None if begun else (master, self._first + env) for env, begun in enumerate(self._begun)]
        return [own[env] if given[env] is None else (master_seed(given[env]), 0) for env in rows]

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Steps every environment with its action. Where one is refused, none is stepped."""
        replaced = self._core.step(whole_actions(actions))
        mask, elapsed = self._out(self._mask), self._out(self._elapsed)
        infos: dict[str, Any] = {"action_mask": mask, "elapsed_secs": elapsed, "jct_mean_secs": self._out(self._jct)}
        if self._half_life is not None:
            infos["discount"] = 0.5 ** (elapsed / self._half_life)
        terminated, truncated = self._out(self._terminated), self._out(self._truncated)
        ended = self._terminated | self._truncated
        if replaced:
            infos["forbidden"] = np.zeros(self.num_envs, bool)
            infos["forbidden"][replaced] = True
        if self._same_step and ended.any():
            last = np.full(self.num_envs, None, dtype=object)
            for env in np.flatnonzero(ended):
                last[env] = self._final(int(env))
            final = {name: value.copy() for name, value in infos.items()}
            final["action_mask"][ended] = self._waiting
            infos["final_info"] = self._infos(final, ended, within=ended)
            infos["final_obs"] = last
        return self._observe(mask), self._out(self._reward), terminated, truncated, self._infos(infos, ended)

    def _infos(
        self,
        infos: dict[str, Any],
        ended: NDArray[np.bool_] | None = None,
        within: NDArray[np.bool_] | None = None,
    ) -> dict[str, Any]:
        """Infos of the rows `within`, with the rows in which each is set."""
        all_rows = np.ones(self.num_envs, bool) if within is None else within
        rows = {"jct_mean_secs": ended, "final_obs": ended, "final_info": ended}
        if "forbidden" in infos:
            rows["forbidden"] = infos["forbidden"] & all_rows
        return infos | {f"_{name}": np.array(rows.get(name, all_rows)) for name in infos}

    def action_masks(self) -> NDArray[np.bool_]:
        """Masks of allowed actions, bool of shape `(num_envs, actions)`."""
        return self._out(self._mask.view(np.bool_))

    def render(self) -> tuple[Any, ...] | None:
        """Every cluster as `render_mode` says, a tuple of `num_envs`; None without a mode."""
        if self.render_mode is None:
            return None
        return tuple(_gantt.render(self._core, env, self.render_mode) for env in range(self.num_envs))

    def _observe(self, mask: NDArray[np.int8]) -> Any:
        flat = self._out(self._obs)
        return {"action_mask": mask.astype(np.float32), "observations": flat} if self._masked else flat

    def _final(self, env: int) -> Any:
        """Last observation of an episode that has ended. No action is left in it, so its mask is that of waiting."""
        flat = self._last[env].copy()
        if not self._masked:
            return flat
        return {"action_mask": self._waiting.astype(np.float32), "observations": flat}

    def _out(self, array: NDArray[Any]) -> NDArray[Any]:
        return array.copy() if self._copy else array

    def _lend(self) -> None:
        """Takes read-only views of the arrays that the environments write."""

        def view(name: str) -> NDArray[Any]:
            array = self._core.arrays()[name]
            lent = array.view(np.int8) if name == "masks" else array.view()
            lent.flags.writeable = False
            return lent

        self._obs, self._mask, self._last = view("observations"), view("masks"), view("final_observations")
        self._reward, self._elapsed, self._jct = view("rewards"), view("elapsed_secs"), view("jct_mean_secs")
        self._terminated, self._truncated = view("terminated"), view("truncated")

    def __getstate__(self) -> dict[str, Any]:
        lent = {"_obs", "_mask", "_last", "_reward", "_elapsed", "_jct", "_terminated", "_truncated"}
        return {name: value for name, value in self.__dict__.items() if name not in lent}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lend()
