"""Experiments: those that ship, and files."""

import os
from pathlib import Path

import numpy as np

from goodput_gym import _core

_SHIPPED = dict(_core.SHIPPED)

EXPERIMENTS: tuple[str, ...] = tuple(_SHIPPED)
"""Names of the experiments that ship, for the argument `config`."""


def read(config: str | os.PathLike[str]) -> tuple[str, str]:
    """Name and TOML text of an experiment: one that ships, or a file."""
    if isinstance(config, str) and config in _SHIPPED:
        return config, _SHIPPED[config]
    path = Path(config)
    if not path.exists():
        known = ", ".join(EXPERIMENTS)
        raise FileNotFoundError(
            f"config: there is no file {str(config)!r}, and no experiment of this name ships; those that do are {known}"
        )
    return str(path), path.read_text(encoding="utf-8")


def sets(values: dict[str, object] | None) -> list[str]:
    """Changed values as `KEY=VALUE` in TOML."""
    return [f"{key}={_toml(value)}" for key, value in (values or {}).items()]


def _toml(value: object) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # A basic string of TOML has the escapes of JSON.
        import json

        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (int, float)):
        return repr(value)
    kind = type(value).__name__
    raise TypeError(f"sets: {value!r} is a {kind}, expected an int, float, str or bool, or a list or dict of them")
