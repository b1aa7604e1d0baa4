"""Scheduling of deep-learning clusters as environments for Gymnasium.

    import gymnasium
    import goodput_gym

    env = gymnasium.make("goodput_gym/Cluster-v0", config="quickstart")
    observation, info = env.reset(seed=1)
    while True:
        action = info["action_mask"].argmax()                # the first allowed action
        observation, reward, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            break

- `ClusterEnv`: one environment, a `gymnasium.Env`.
- `ClusterVectorEnv`: environments that step together on threads of Rust, a `gymnasium.vector.VectorEnv`.
- `sb3.ClusterVecEnv`: the form in which Stable-Baselines3 takes several environments.
- `export`: a net that was trained here as a policy bundle, for `goodput eval`, `explain` and `live`; `Bundle`: a policy
  bundle that decides here.
- `policies["tiresias"]`: a published policy; `policies["tiresias"](env)` says what it would do in `env`.
- `forecast`: forecasts of load series with quantiles.
- `rllib` and `torchrl`: the forms in which RLlib and TorchRL take environments.
- `read_run`: results of `goodput eval` as data frames.
- `sweep`: the cells of `goodput sweep plan` on a cluster of Ray; `evolve`: `goodput train --distributed` there.
- `EXPERIMENTS`: names of the experiments that ship; a path of a file of one's own will do as well.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from goodput_gym._config import EXPERIMENTS
from goodput_gym._core import POLICIES as _POLICIES
from goodput_gym._core import Bundle, __version__
from goodput_gym._evolve import evolve
from goodput_gym._policies import Heuristic, policies
from goodput_gym._runs import Run, read_run
from goodput_gym._sweep import sweep

if TYPE_CHECKING:
    from goodput_gym import forecast
    from goodput_gym._env import ClusterEnv
    from goodput_gym._export import export
    from goodput_gym._spaces import Expert, Feature
    from goodput_gym._vector import ClusterVectorEnv

__all__ = [
    "EXPERIMENTS",
    "POLICIES",
    "Bundle",
    "ClusterEnv",
    "ClusterVectorEnv",
    "Expert",
    "Feature",
    "Heuristic",
    "Run",
    "__version__",
    "evolve",
    "export",
    "forecast",
    "policies",
    "read_run",
    "register",
    "sweep",
]

POLICIES: tuple[str, ...] = tuple(_POLICIES)
"""Names of the published policies, which are the keys of `policies`."""

_LAZY = {
    "ClusterEnv": "_env",
    "ClusterVectorEnv": "_vector",
    "Expert": "_spaces",
    "Feature": "_spaces",
    "export": "_export",
}
"""Names from modules that import Gymnasium."""

_MODULES = ("forecast",)
"""Modules that are imported when they are asked for."""

ENV_ID = "goodput_gym/Cluster-v0"


def register() -> None:
    """Registers `goodput_gym/Cluster-v0` with Gymnasium, which importing this package does as well."""
    import gymnasium

    if ENV_ID not in gymnasium.registry:
        gymnasium.register(
            ENV_ID,
            entry_point="goodput_gym:ClusterEnv",
            vector_entry_point="goodput_gym:ClusterVectorEnv",
        )


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"goodput_gym.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module 'goodput_gym' has no attribute {name!r}")
    return getattr(importlib.import_module(f"goodput_gym.{_LAZY[name]}"), name)


# A server of policies starts in every run of `goodput eval`, and does without Gymnasium, which takes long to import.
if sys.orig_argv[1:3] != ["-m", "goodput_gym.policy"]:
    register()
