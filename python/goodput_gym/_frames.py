"""Data frames of pandas and polars with the columns of Nixtla's libraries."""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

COLUMNS = ("unique_id", "ds", "y")
"""Name of the series, time, and value."""


@dataclass(frozen=True)
class Frames:
    """Library of a frame, which makes those that are given back."""

    library: str
    """`"pandas"` or `"polars"`."""

    @classmethod
    def of(cls, frame: Any) -> "Frames":
        """The library of a frame."""
        for library in ("pandas", "polars"):
            module = sys.modules.get(library)
            if module is not None and isinstance(frame, module.DataFrame):
                return cls(library)
        raise TypeError(f"frame is a {type(frame).__name__}, expected a DataFrame of pandas or polars")

    def series(self, frame: Any) -> dict[Any, tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Times in milliseconds since 1970, and values, of each series in the order in which they appear."""
        missing = [column for column in COLUMNS if column not in frame.columns]
        if missing:
            raise ValueError(f"the frame has no column {', '.join(missing)}; expected {', '.join(COLUMNS)}")
        times = np.asarray(frame["ds"].to_numpy())
        if times.dtype == object:
            # Times with a zone, which pandas gives as objects.
            times = self._utc(frame["ds"])
        if not np.issubdtype(times.dtype, np.datetime64):
            raise TypeError(f"ds is {times.dtype}, expected times")
        if np.isnat(times).any():
            raise ValueError("ds has a time that is missing")
        millis = times.astype("datetime64[ms]").astype(np.int64)
        values = np.asarray(frame["y"].to_numpy(), dtype=np.float64)
        names = np.asarray(frame["unique_id"].to_numpy(), dtype=object)
        rows: dict[Any, list[int]] = {}
        for row, name in enumerate(names):
            rows.setdefault(name, []).append(row)
        return {name: (millis[chosen], values[chosen]) for name, chosen in rows.items()}

    def frame(self, names: list[Any], times: NDArray[np.datetime64], values: dict[str, NDArray[np.float64]]) -> Any:
        """A frame of this library."""
        library: Any = sys.modules[self.library]
        return library.DataFrame({"unique_id": names, "ds": times, **values})

    def _utc(self, times: Any) -> NDArray[np.datetime64]:
        converted = times.dt.tz_convert("UTC").dt.tz_localize(None) if self.library == "pandas" else times
        return np.asarray(converted.to_numpy())
