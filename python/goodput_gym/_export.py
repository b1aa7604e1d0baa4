"""Nets that were trained elsewhere, as bundles of goodput."""

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_gym import _core, _onnx
from goodput_gym._spaces import environment, wrappers

Arrays = dict[str, NDArray[np.float32]]
Layers = dict[str, tuple[NDArray[np.float32], NDArray[np.float32]]]


def export(source: Any, env: Any, path: str | os.PathLike[str], *, seed: int = 0, steps: int = 0) -> str:
    """Writes a net as a policy bundle, which `goodput eval`, `goodput sim`, `goodput explain` and `goodput live` take,
    and returns its SHA-256.

    A perceptron with ReLU, or a set encoder as goodput has it, becomes a bundle of that kind, which decides fastest.
    Any other net becomes an ONNX graph in a bundle of the kind `onnx`, written by the exporter of torch.

    Parameters
    ----------
    source
        A learner or policy of Stable-Baselines3, a torch module, its state dict, or the path of an ONNX file.

        Perceptrons and set encoders are known by three kinds of names: those of Stable-Baselines3's `MlpPolicy`;
        `actor` and `critic` as two `nn.Sequential` (`actor.0.weight`, `actor.2.weight`, ...); and goodput's own
        (`actor1`, ..., `actor_out`, or `slot1`, ... of a set encoder). Matrices are torch's, `(outputs, inputs)`. A
        state dict does not say what lies between layers: it is taken to be ReLU.

        Another module maps the observation, float32 `(1, obs_dim)`, to scores `(1, actions)`, of which the greatest
        allowed one decides; of several outputs, the first one. A module without a forward pass has an `actor` that
        does so. An ONNX file has the observation as its one input, the scores as its first output, and its weights
        inside.
    env
        The `ClusterEnv`, `ClusterVectorEnv` or `sb3.ClusterVecEnv` on which it was trained, wrapped or not.
    path
        File to write, by convention `policy.bundle`.
    seed, steps
        Seed of the training, and the number of decisions that it learned from, for the model card.
    """
    described = environment(env)
    for part in (source, env):
        _refuse_normalised(part)
    config = hashlib.sha256(described._core.resolved().encode()).hexdigest()
    origin = list(sys.argv), seed, steps, config
    if isinstance(source, (str, os.PathLike)):
        return _core.export_graph(described._core, os.fspath(path), Path(source).read_bytes(), *origin)
    try:
        _refuse_other_modules(source)
        layers, sizes = _layers(_arrays(source))
    except ValueError:
        graph = _onnx.graph(getattr(source, "policy", source), len(described.features))
        if graph is None:
            raise
        return _core.export_graph(described._core, os.fspath(path), graph, *origin)
    kind = "set" if "slot1" in layers else "mlp"
    return _core.export(described._core, os.fspath(path), kind, sizes, layers, *origin)


_MODULES = ("Linear", "ReLU", "Identity", "Flatten", "Dropout", "Sequential", "ModuleList", "ModuleDict")
"""Modules of torch that a bundle has as well, or that do nothing when a net decides."""

_WRAPPERS = ("NormalizeObservation", "VecNormalize")


def _refuse_other_modules(source: Any) -> None:
    """Refuses, as a perceptron, a net with another module than layers with ReLU between them, such as Tanh, the
    default of Stable-Baselines3."""
    net = getattr(source, "policy", source)
    if not hasattr(net, "modules"):
        return
    for name, module in net.named_modules():
        kind = type(module)
        if kind.__name__ == "Sequential":
            _refuse_other_order(name, [type(layer).__name__ for layer in module])
        # Modules of torch itself compute; others hold them.
        if kind.__module__.startswith("torch.nn.") and kind.__name__ not in _MODULES:
            raise ValueError(
                f"the net has {kind.__name__} ({name}), and a perceptron has Linear layers with ReLU between them"
            )


def _refuse_other_order(name: str, kinds: list[str]) -> None:
    """Refuses a sequence without a ReLU between two layers, or with one where a bundle has none."""
    found = [kind for kind in kinds if kind in ("Linear", "ReLU")]
    layers = found.count("Linear")
    trunk = "mlp_extractor" in name
    if found != (["Linear", "ReLU"] * layers)[: None if trunk or not layers else -1]:
        raise ValueError(f"{name} is {', '.join(kinds)}, and a bundle has one ReLU between two Linear layers")


def _refuse_normalised(part: Any) -> None:
    """Refuses a learner or an environment that normalises observations: the net would get others in goodput."""
    for wrapper in wrappers(part.get_env() if hasattr(part, "get_env") else part):
        if type(wrapper).__name__ in _WRAPPERS and getattr(wrapper, "norm_obs", True):
            raise ValueError(
                f"{type(wrapper).__name__} changes the observations, which a bundle cannot repeat; train without it, "
                "or with VecNormalize(norm_obs=False)"
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
    used = {f"{theirs}.{part}" for theirs in names.values() for part in ("weight", "bias")}
    left = sorted(set(arrays) - used)
    if left:
        raise ValueError(f"a bundle has no place for {', '.join(left)}")
    if "slot1" in layers:
        # The number of heads does not follow from shapes; export knows encoders without attention.
        return layers, [len(layers["slot1"][1]), 0]
    hidden = [len(layers[f"actor{depth}"][1]) for depth in range(1, len(layers)) if f"actor{depth}" in layers]
    if "actor_out" not in layers or "critic_out" not in layers:
        raise ValueError(f"no net of a known kind has these layers: {', '.join(bare)}")
    critic = [len(layers[f"critic{depth}"][1]) for depth in range(1, len(layers)) if f"critic{depth}" in layers]
    if critic != hidden:
        raise ValueError(
            f"the hidden layers of the critic are {critic} wide, and those of the actor {hidden}; in a bundle they are "
            "equal"
        )
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
