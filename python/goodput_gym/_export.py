"""Nets that were trained elsewhere, as bundles of goodput."""

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_gym import _core
from goodput_gym._spaces import Described

Arrays = dict[str, NDArray[np.float32]]
Layers = dict[str, tuple[NDArray[np.float32], NDArray[np.float32]]]


def export(source: Any, env: Any, path: str | os.PathLike[str], *, seed: int = 0, steps: int = 0) -> str:
    """Writes a net as a policy bundle, which `goodput eval`, `goodput explain` and `goodput live` take, and returns its
    SHA-256.

    Parameters
    ----------
    source
        A learner or policy of Stable-Baselines3, a torch module, or its state dict. Three kinds of names are known:
        those of Stable-Baselines3's `MlpPolicy`; `actor` and `critic` as two `nn.Sequential` (`actor.0.weight`,
        `actor.2.weight`, ...); and goodput's own (`actor1`, ..., `actor_out`, or `slot1`, ... of a set encoder).
        Matrices are torch's, `(outputs, inputs)`. Between layers the net must have ReLU.
    env
        The `ClusterEnv`, `ClusterVectorEnv` or `sb3.ClusterVecEnv` on which it was trained, wrapped or not.
    path
        File to write, by convention `policy.bundle`.
    seed, steps
        Seed of the training, and the number of decisions that it learned from, for the model card.
    """
    described = _described(env)
    _refuse_other_activations(source)
    layers, sizes = _layers(_arrays(source))
    kind = "set" if "slot1" in layers else "mlp"
    config = hashlib.sha256(described._core.resolved().encode()).hexdigest()
    return _core.export(described._core, os.fspath(path), kind, sizes, layers, list(sys.argv), seed, steps, config)


def _described(env: Any) -> Described:
    """The environment inside its wrappers."""
    while not isinstance(env, Described):
        inner = getattr(env, "unwrapped", env)
        inner = inner if inner is not env else getattr(env, "envs", None) or getattr(env, "venv", None)
        inner = inner[0] if isinstance(inner, list) else inner
        if inner is None:
            raise TypeError(f"env is a {type(env).__name__}, expected an environment of goodput_gym")
        env = inner
    return env


def _refuse_other_activations(source: Any) -> None:
    """Refuses a policy of Stable-Baselines3 with another activation than ReLU; its default is Tanh."""
    activation = getattr(getattr(source, "policy", source), "activation_fn", None)
    if activation is not None and activation.__name__ != "ReLU":
        raise ValueError(
            f"the net has {activation.__name__} between its layers, and bundles have ReLU: "
            "train with policy_kwargs={'activation_fn': torch.nn.ReLU}"
        )


def _arrays(source: Any) -> Arrays:
    state = source if isinstance(source, Mapping) else getattr(source, "policy", source).state_dict()
    plain = {name: value.detach().cpu().numpy() if hasattr(value, "detach") else value for name, value in state.items()}
    return {name: np.asarray(value, np.float32) for name, value in plain.items()}


def _layers(arrays: Arrays) -> tuple[Layers, list[int]]:
    """Layers by goodput's names, and the widths of the hidden ones (of a set encoder, its width and its heads)."""
    bare = [name.removesuffix(".weight") for name in arrays if name.endswith(".weight")]
    names = _of_sb3(bare) or _of_sequences(bare) or {name: name for name in bare}
    layers: Layers = {}
    for own, theirs in names.items():
        matrix, bias = arrays[f"{theirs}.weight"], arrays.get(f"{theirs}.bias")
        if matrix.ndim != 2 or bias is None:
            raise ValueError(f"layer {theirs!r} is no affine layer with a bias")
        layers[own] = np.ascontiguousarray(matrix.T), np.ascontiguousarray(bias)
    if "slot1" in layers:
        # The number of heads does not follow from shapes; export knows encoders without attention.
        return layers, [len(layers["slot1"][1]), 0]
    hidden = [len(layers[f"actor{depth}"][1]) for depth in range(1, len(layers)) if f"actor{depth}" in layers]
    if "actor_out" not in layers or "critic_out" not in layers:
        raise ValueError(f"no net of a known kind has these layers: {', '.join(bare)}")
    return layers, hidden


def _of_sb3(bare: list[str]) -> dict[str, str] | None:
    """Names of Stable-Baselines3's `ActorCriticPolicy`."""
    if "action_net" not in bare:
        return None
    names = {"actor_out": "action_net", "critic_out": "value_net"}
    for trunk, theirs in (("actor", "policy_net"), ("critic", "value_net")):
        for depth, name in enumerate(_numbered(bare, rf"mlp_extractor\.{theirs}"), 1):
            names[f"{trunk}{depth}"] = name
    return names


def _of_sequences(bare: list[str]) -> dict[str, str] | None:
    """Names of two `nn.Sequential`, as CleanRL has them."""
    names: dict[str, str] = {}
    for trunk in ("actor", "critic"):
        found = _numbered(bare, trunk)
        if not found:
            return None
        *hidden, last = found
        names |= {f"{trunk}{depth}": name for depth, name in enumerate(hidden, 1)} | {f"{trunk}_out": last}
    return names


def _numbered(bare: list[str], prefix: str) -> list[str]:
    """The layers `PREFIX.NUMBER`, in order of their numbers."""
    found = [(int(match[1]), name) for name in bare if (match := re.fullmatch(rf"{prefix}\.(\d+)", name))]
    return [name for _, name in sorted(found)]
