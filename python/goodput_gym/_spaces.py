"""Spaces and names that `ClusterEnv` and `ClusterVectorEnv` share."""

import operator
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from goodput_gym import _core
from goodput_gym._core import Environments

OBSERVATIONS = ("flat", "masked")


@dataclass(frozen=True)
class Feature:
    """One number of an observation."""

    name: str
    """Name with its place, for example `job.3.log_age_secs` or `cluster.free_share`."""
    unit: str
    """Unit, for example `0.1 ln(1 + s)`."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Bounds that the number never leaves. They are close where the unit says a range, and otherwise wide."""
        if self.unit == "0 or 1":
            return 0.0, 1.0
        if "-4 to 4" in self.unit:
            return -4.0, 4.0
        if "at most 4" in self.unit:
            return 0.0, 4.0
        # The greatest 32-bit number has a logarithm of 88.7.
        logarithm = re.fullmatch(r"([\d.]* ?)ln\(1 \+ .*\)", self.unit)
        return (0.0, 100.0 * float(logarithm[1] or 1.0)) if logarithm else (-1e4, 1e4)


class Described:
    """Names and sizes of an environment of goodput."""

    _core: Environments
    slots: int
    """Job slots of an observation."""
    slot_features: int
    """Numbers of one job slot."""
    cluster_features: int
    """Numbers that follow the slots and describe the cluster, its services and its pools."""
    verbs: int
    """Actions of one job slot."""
    schema: str
    """SHA-256 of the meaning of all numbers, as bundles of policies carry it."""
    features: tuple[Feature, ...]
    """Name and unit of every number of a flat observation, in order."""
    action_names: tuple[str, ...]
    """Name of every action, in order; the last one is `wait`, which ends the round."""

    def _describe(self, core: Environments) -> None:
        sizes: dict[str, Any] = core.layout()
        self._core = core
        self.slots, self.slot_features = sizes["slots"], sizes["slot_features"]
        self.cluster_features, self.verbs, self.schema = sizes["globals"], sizes["verbs"], sizes["schema"]
        self.features = tuple(Feature(*pair) for pair in core.features())
        self.action_names = tuple(core.actions())

    @property
    def resolved_config(self) -> str:
        """The experiment in TOML with every default filled in, as runs of goodput keep it."""
        return self._core.resolved()

    @property
    def stream_seeds(self) -> NDArray[np.uint64]:
        """Seed of the first workload of each environment's stream, uint64 of shape `(num_envs,)`: the next episode has
        the next number. Environments of one number play one stream. Meaningful after `reset`."""
        return np.array(self._core.seeds(), dtype=np.uint64)

    def expert(self, policy: str) -> "Expert":
        """A published policy that says what it would do in this environment, state by state.

        `policy` is a name of `goodput_gym.POLICIES`, with parameters where wanted: `"gandiva(quantum_secs=60)"`.
        """
        return Expert(self._core, policy)


def environment(env: Any) -> Described:
    """The environment of goodput inside its wrappers."""
    for inner in wrappers(env):
        if isinstance(inner, Described):
            return inner
    raise TypeError(f"env is a {type(env).__name__}, expected an environment of goodput_gym")


def wrappers(env: Any) -> Iterator[Any]:
    """The environment and what it wraps, from the outside in; of several environments, the first."""
    while env is not None:
        yield env
        if isinstance(env, Described):
            return
        # Attributes of its own: wrappers lend the attributes of what they wrap.
        own = getattr(env, "__dict__", {})
        inner = next((own[name] for name in ("env", "venv", "envs") if name in own), None)
        env = inner[0] if isinstance(inner, (list, tuple)) else inner


class Expert:
    """What a published policy would do: labels to imitate (DAgger, Ross et al. 2011), or an opponent to play.

    The policy decides once a round, and its plan becomes the actions of that round. So ask before every action of an
    episode, whether or not you play the answer.
    """

    def __init__(self, core: Environments, policy: str) -> None:
        self.name = policy
        self._core, self._expert = core, _core.Expert(core, policy)

    def actions(self) -> NDArray[np.int64]:
        """The action of every environment as it stands, int64 of shape `(num_envs,)`; `ClusterEnv` is one of them."""
        return np.array(self._expert.actions(self._core), dtype=np.int64)


def spaces(described: Described, observation: str) -> tuple[gymnasium.Space[Any], gymnasium.spaces.Discrete]:
    """Observation and action space of one environment."""
    if observation not in OBSERVATIONS:
        raise ValueError(f"observation is {observation!r}, expected 'flat' or 'masked'")
    actions = gymnasium.spaces.Discrete(len(described.action_names))
    low, high = np.array([feature.bounds for feature in described.features], np.float32).T
    flat = gymnasium.spaces.Box(low, high, dtype=np.float32)
    if observation == "flat":
        return flat, actions
    mask = gymnasium.spaces.Box(0.0, 1.0, (int(actions.n),), np.float32)
    return gymnasium.spaces.Dict({"action_mask": mask, "observations": flat}), actions


def master_seed(seed: int | None) -> int:
    """The seed, or one of the operating system's."""
    if seed is None:
        return secrets.randbits(63)
    try:
        number = operator.index(seed)
    except TypeError:
        raise TypeError(f"seed is {seed!r}, expected an int") from None
    if isinstance(seed, (bool, np.bool_)):
        raise TypeError(f"seed is {seed!r}, expected an int")
    if not 0 <= number < 2**64:
        raise ValueError(f"seed is {number}, expected 0 or more and less than 2**64")
    return number


def whole_actions(actions: Any) -> NDArray[np.int64]:
    """Actions as int64, where they are integers."""
    array = np.asarray(actions)
    if not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"actions are {array.dtype}, expected integers")
    return np.ascontiguousarray(array, dtype=np.int64)


def refuse_options(options: dict[str, Any] | None, known: tuple[str, ...] = ()) -> None:
    """Refuses options of a reset that are not known."""
    for name in options or {}:
        if name not in known:
            raise ValueError(f"options: {name!r} is not known; {', '.join(known) or 'there are none'}")
