"""Published policies by name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from goodput_gym._core import POLICIES

if TYPE_CHECKING:
    from goodput_gym._spaces import Expert

__all__ = ["Heuristic", "policies"]


@dataclass(frozen=True)
class Heuristic:
    """A published policy, such as Tiresias or Sia."""

    name: str
    """Name as `goodput list policies` has it."""

    def __call__(self, env: Any, **parameters: object) -> "Expert":
        """What the policy would do in `env`, state by state: labels to imitate, or an opponent.

        `env` is a `ClusterEnv`, `ClusterVectorEnv`, `sb3.ClusterVecEnv` or `torchrl.ClusterTorchEnv`, wrapped by
        Gymnasium or not. Parameters are those of `goodput list policies -o wide`:
        `policies["gandiva"](env, quantum_secs=60)`. Ask for `actions()`, int64 of shape `(num_envs,)`, before every
        action of an episode, because a policy decides once a round.
        """
        from goodput_gym._spaces import environment

        named = ", ".join(f"{key}={_written(value)}" for key, value in parameters.items())
        return environment(env).expert(f"{self.name}({named})" if named else self.name)


class _Policies(Mapping[str, Heuristic]):
    """Published policies by name; a mapping that lists them and knows no other."""

    def __getitem__(self, name: str) -> Heuristic:
        if name not in POLICIES:
            import difflib

            near = difflib.get_close_matches(name, POLICIES, 1)
            advice = f"; did you mean {near[0]!r}?" if near else f"; those that there are: {', '.join(POLICIES)}"
            raise KeyError(f"there is no policy {name!r}{advice}")
        return Heuristic(name)

    def __iter__(self) -> Iterator[str]:
        return iter(POLICIES)

    def __len__(self) -> int:
        return len(POLICIES)


policies: Mapping[str, Heuristic] = _Policies()
"""Published policies by name: `policies["sia"](env).actions()`."""


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
