"""One environment, a `gymnasium.Env`."""

import os
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from goodput_gym import _config, _gantt
from goodput_gym._core import Environments
from goodput_gym._spaces import Described, master_seed, refuse_options, spaces, whole_actions


class ClusterEnv(Described, gymnasium.Env):
    """A cluster on which deep-learning jobs arrive, run and end.

    An action changes the size of one job or ends the round.

    **Observation**: float32 of shape `(slots * slot_features + cluster_features,)`, the numbers of each job slot, slot
    by slot, and then those of the cluster. `features` names every number with its unit; an empty slot is all zeros.

    **Action**: action `a < slots * verbs` does verb `a % verbs` to the job in slot `a // verbs`. `action_names` names
    all; the last one, `wait`, ends the round, after which simulated time passes until the next decision.

    **Mask**: `info["action_mask"]`, int8 of shape `(actions,)`, 1 where an action is allowed, as
    `action_space.sample(mask)` takes it; `action_masks()`, bool of that shape.

    **Reward**: what `[environment.reward]` of the experiment says, by default minus the number of jobs in the system,
    integrated over the hours that the step takes. The decisions of one round take no time.

    **Time**: `info["elapsed_secs"]`, simulated seconds that the step took. Discount by them: the weight of what follows
    is `0.5 ** (elapsed_secs / half_life_secs)`, which is `info["discount"]` where `half_life_secs` is given.

    **End**: `terminated` when all jobs are complete, `truncated` at the horizon of the experiment. Then
    `info["jct_mean_secs"]` is the mean job completion time of the episode in seconds.

    Parameters
    ----------
    config
        Name of an experiment that ships (`goodput_gym.EXPERIMENTS`), or the path of an experiment file.
    sets
        Changed values of the experiment, for example `{"environment.slots": 32}`.
    seed
        Master seed of the first `reset` without a seed; None draws one.
    index
        Place in a vector: environment 3 of `ClusterVectorEnv(config, seed=1)` plays the episodes of `index=3, seed=1`.
    split
        `"training"`: the workloads from which `goodput train` learns without `train.randomise`, a curriculum and
        `train.warm_up`. `"validation"` and `"held-out"`: the others, whatever the seed.
    on_forbidden
        `"raise"`: a forbidden action is a ValueError, and nothing is stepped. `"wait"`: the round ends instead, or the
        first allowed action is taken where it may not end, and `info["forbidden"]` is True.
    observation
        `"flat"`, or `"masked"`: a dict of `observations` and `action_mask` (float32).
    half_life_secs
        Seconds after which the future counts half. Rewards are then discounted to the moment of the action within each
        step, as a semi-Markov decision process has it. None: plain integrals.
    present_value
        Discount rewards to the beginning of the workload, for a learner that can discount only by decision: with its
        `gamma = 1`, a return is then the discounted one. Needs `half_life_secs`.
    round_actions
        Most actions of a round: the mask then leaves its end alone, where the round may end. The actions of a round take
        no time and pay nothing, so that an untrained learner fills rounds with them; a small number, such as 8, gives
        it more rounds. A deployed policy has no such limit. Experts need None, because their plans may take more.
    render_mode
        What `render()` returns. `"ansi"`: the cluster and its jobs as text. `"rgb_array"`: a picture of the nodes over
        time, uint8 of shape `(650, 1100, 3)`. `"gantt"`: that picture as a `matplotlib.figure.Figure`, to save, or
        to show in a notebook after `%matplotlib inline`. The last two need matplotlib: `pip install 'goodput-gym[render]'`.
    """

    metadata = {"render_modes": list(_gantt.MODES), "render_fps": 1}

    def __init__(
        self,
        config: str | os.PathLike[str] = "quickstart",
        *,
        sets: dict[str, object] | None = None,
        seed: int | None = None,
        index: int = 0,
        split: str = "training",
        on_forbidden: str = "raise",
        observation: str = "flat",
        half_life_secs: float | None = None,
        present_value: bool = False,
        round_actions: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        _gantt.check_mode(render_mode)
        core = Environments(
            *_config.read(config),
            _config.sets(sets),
            1,
            1,
            split,
            "disabled",
            on_forbidden,
            half_life_secs,
            present_value,
            _gantt.is_picture(render_mode),
            round_actions,
        )
        self._describe(core)
        self.observation_space, self.action_space = spaces(self, observation)
        self.render_mode = render_mode
        self._masked, self._half_life = observation == "masked", half_life_secs
        self._seed: int | None = seed
        self._index, self._begun = index, False
        self._arrays = core.arrays()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode. With a seed the stream of episodes begins anew; without one the next episode follows."""
        refuse_options(options)
        super().reset(seed=None if seed is None else master_seed(seed))
        if seed is not None or not self._begun:
            self._core.seed(0, master_seed(self._seed if seed is None else seed), self._index)
            self._begun = True
        self._core.reset()
        mask = self._arrays["masks"][0].astype(np.int8)
        return self._observe(mask), {"action_mask": mask}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Takes one action."""
        replaced = self._core.step(whole_actions([action]))
        arrays, mask = self._arrays, self._arrays["masks"][0].astype(np.int8)
        elapsed = float(arrays["elapsed_secs"][0])
        info: dict[str, Any] = {"action_mask": mask, "elapsed_secs": elapsed}
        if self._half_life is not None:
            info["discount"] = 0.5 ** (elapsed / self._half_life)
        if replaced:
            info["forbidden"] = True
        terminated, truncated = bool(arrays["terminated"][0]), bool(arrays["truncated"][0])
        if terminated or truncated:
            info["jct_mean_secs"] = float(arrays["jct_mean_secs"][0])
        return self._observe(mask), float(arrays["rewards"][0]), terminated, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Mask of allowed actions, bool of shape `(actions,)`: the convention of sb3-contrib."""
        mask: NDArray[np.bool_] = self._arrays["masks"][0].astype(np.bool_)
        return mask

    def render(self) -> Any:
        """The cluster as `render_mode` says; None without a mode."""
        return _gantt.render(self._core, 0, self.render_mode)

    def _observe(self, mask: NDArray[np.int8]) -> Any:
        flat = self._arrays["observations"][0].copy()
        return {"action_mask": mask.astype(np.float32), "observations": flat} if self._masked else flat

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_arrays"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._arrays = self._core.arrays()
