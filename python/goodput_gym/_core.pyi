"""The extension module in Rust. Private: use the classes of `goodput_gym`."""

import os
from typing import final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MODELS",
    "POLICIES",
    "SHIPPED",
    "Bundle",
    "Environments",
    "Expert",
    "Forecaster",
    "__version__",
    "export",
    "export_graph",
]

MODELS: list[str]
SHIPPED: list[tuple[str, str]]
POLICIES: list[str]
__version__: str

def export(
    envs: Environments,
    path: str | os.PathLike[str],
    kind: str,
    sizes: list[int],
    layers: dict[str, tuple[NDArray[np.float32], NDArray[np.float32]]],
    argv: list[str],
    seed: int,
    steps: int,
    config_sha256: str,
) -> str: ...

def export_graph(
    envs: Environments,
    path: str,
    graph: bytes,
    argv: list[str],
    seed: int,
    steps: int,
    config_sha256: str,
) -> str: ...

@final
class Bundle:
    def __new__(cls, path: str | os.PathLike[str]) -> Bundle: ...
    @property
    def kind(self) -> str: ...
    def act(self, observation: NDArray[np.float32], mask: NDArray[np.bool_] | NDArray[np.int8]) -> int: ...

@final
class Expert:
    def __new__(cls, envs: Environments, name: str) -> Expert: ...
    def actions(self, envs: Environments) -> list[int]: ...

@final
class Forecaster:
    @staticmethod
    def fit(
        start_epoch_millis: int,
        step_millis: int,
        values: NDArray[np.float64],
        models: list[str],
        day_steps: int | None,
        horizon_steps: int | None,
    ) -> Forecaster: ...
    @staticmethod
    def read(text: str) -> Forecaster: ...
    def written(self) -> str: ...
    def update(self, values: NDArray[np.float64]) -> None: ...
    def refresh(self) -> None: ...
    def quantiles(self, steps: int, levels: list[float]) -> NDArray[np.float64]: ...
    @property
    def next_epoch_millis(self) -> int: ...
    @property
    def step_millis(self) -> int: ...
    @property
    def day_steps(self) -> int: ...

@final
class Environments:
    def __new__(
        cls,
        name: str,
        text: str,
        sets: list[str],
        num_envs: int,
        threads: int,
        split: str,
        autoreset: str,
        on_forbidden: str,
        half_life_secs: float | None,
        present_value: bool,
        timeline: bool,
        round_actions: int | None,
    ) -> Environments: ...
    def __len__(self) -> int: ...
    def arrays(self) -> dict[str, NDArray[np.generic]]: ...
    def layout(self) -> dict[str, int | bool | str]: ...
    def features(self) -> list[tuple[str, str]]: ...
    def actions(self) -> list[str]: ...
    def seeds(self) -> list[int]: ...
    def seed(self, at: int, master: int, index: int) -> None: ...
    def reset(self, which: list[bool] | None = None) -> None: ...
    def step(self, actions: NDArray[np.int64]) -> list[int]: ...
    def is_over(self, at: int) -> bool: ...
    def text(self, at: int) -> str: ...
    def picture(
        self, at: int
    ) -> tuple[
        float,
        list[tuple[str, int]],
        list[tuple[int, int, int, float, float | None]],
        list[tuple[float, int]],
        list[str],
    ]: ...
    def resolved(self) -> str: ...
