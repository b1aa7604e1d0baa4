"""Forecasts of load series with quantiles, by the forecaster of `goodput forecast`.

    from goodput_gym import forecast

    fitted = forecast.fit(frame)                              # unique_id, ds, y, as Nixtla's libraries have them
    fitted.predict(24, level=[80])                            # unique_id, ds, goodput, goodput-lo-80, goodput-hi-80
    fitted.update(later)                                      # the values that came next
    fitted.save("fitted")                                     # a file for each series, for `goodput forecast predict`

- `Forecaster`: the forecaster of one series, with arrays.
- `Forecasters`: the forecasters of a frame, by `unique_id`; `fit` makes them.
- `MODELS`: names of the models that can be weighed.

Frames are those of pandas or polars, and come back from the library that they were given in, with times in UTC.
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from goodput_gym import _core
from goodput_gym._frames import COLUMNS, Frames

__all__ = ["MODELS", "Forecaster", "Forecasters", "fit"]

MODELS: tuple[str, ...] = tuple(_core.MODELS)
"""Names of the models; without a choice, fourteen of them are weighed."""

_MOST_STEPS = 50_000_000
"""Largest number of steps of a series: some years of seconds. A row far away from the others is a mistake."""


class Forecaster:
    """A forecaster that knows its series up to now. `Forecaster.fit` and `Forecaster.load` make one."""

    def __init__(self, core: _core.Forecaster) -> None:
        self._core = core

    @classmethod
    def fit(
        cls,
        values: ArrayLike,
        *,
        start: "datetime | np.datetime64 | int",
        step_secs: float,
        models: Sequence[str] = (),
        day_steps: int | None = None,
        horizon_steps: int | None = None,
    ) -> "Forecaster":
        """Fits a forecaster, as `goodput forecast fit` does.

        Parameters
        ----------
        values
            Loads in any unit, float of shape `(steps,)`, one for each step; NaN is a gap.
        start
            Time of the first value: a datetime, which is UTC where it has no zone, or milliseconds since 1970.
        step_secs
            Seconds of a step.
        models
            Models to weigh, of `MODELS`; the default is fourteen of them.
        day_steps
            Steps in a day; from the step where it is left out.
        horizon_steps
            Steps ahead for which errors are learned; a day where it is left out.
        """
        array = np.ascontiguousarray(values, dtype=np.float64)
        if array.ndim != 1:
            raise ValueError(f"values have the shape {array.shape}, expected one series: (steps,)")
        step = _step_millis(step_secs)
        core = _core.Forecaster.fit(_epoch_millis(start), step, array, list(models), day_steps, horizon_steps)
        return cls(core)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Forecaster":
        """Reads a file that `save` or `goodput forecast fit` wrote."""
        return cls(_core.Forecaster.read(Path(path).read_text(encoding="utf-8")))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file for `goodput forecast predict`, and for `[forecaster]` of an experiment."""
        Path(path).write_text(self._core.written(), encoding="utf-8")

    def update(self, values: ArrayLike) -> None:
        """Takes in the values that came next, float of shape `(steps,)`; NaN is a gap. Parameters stay: see `refresh`."""
        self._core.update(np.ascontiguousarray(np.atleast_1d(values), dtype=np.float64))

    def refresh(self) -> None:
        """Estimates the parameters anew on the values that are kept, at most 26 weeks; worth doing once a day."""
        self._core.refresh()

    def quantiles(self, steps: int, levels: Sequence[float]) -> NDArray[np.float64]:
        """Quantiles of the next values in the unit of the series, float64 of shape `(steps, levels)`. Levels ascend
        between 0 and 1."""
        return self._core.quantiles(steps, [float(level) for level in levels])

    def times(self, steps: int) -> NDArray[np.datetime64]:
        """Times of the next values, UTC, datetime64[ms] of shape `(steps,)`."""
        millis = self._core.next_epoch_millis + self._core.step_millis * np.arange(steps, dtype=np.int64)
        return millis.astype("datetime64[ms]")

    @property
    def step_secs(self) -> float:
        """Seconds of a step."""
        return self._core.step_millis / 1000.0

    @property
    def day_steps(self) -> int:
        """Steps in a day."""
        return self._core.day_steps

    def __getstate__(self) -> str:
        return self._core.written()

    def __setstate__(self, text: str) -> None:
        self._core = _core.Forecaster.read(text)


class Forecasters(Mapping[str, Forecaster]):
    """Forecasters of several series, by their `unique_id`."""

    def __init__(self, series: dict[Any, Forecaster], frames: Frames) -> None:
        self._series, self._frames = series, frames

    def __getitem__(self, unique_id: Any) -> Forecaster:
        return self._series[unique_id]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._series)

    def __len__(self) -> int:
        return len(self._series)

    def update(self, frame: Any) -> None:
        """Takes in the values that came next: a frame of `unique_id`, `ds` and `y` that begins after the last value.

        Nothing is taken in where a series is unknown or begins earlier. Steps without a row are gaps.
        """
        steps = {}
        for name, (times, values) in Frames.of(frame).series(frame).items():
            if name not in self._series:
                raise KeyError(f"unique_id {name!r} is not among those that were fitted")
            known = self._series[name]._core
            steps[name] = _at_steps(name, times, values, known.step_millis, known.next_epoch_millis)
        for name, values in steps.items():
            self._series[name].update(values)

    def refresh(self) -> None:
        """Estimates the parameters of every forecaster anew."""
        for forecaster in self._series.values():
            forecaster.refresh()

    def quantiles(self, h: int, quantiles: Sequence[float] = (0.1, 0.5, 0.9)) -> Any:
        """A frame of `unique_id`, `ds`, and `goodput-q-10` for the quantile 0.1, and so on, for `h` steps."""
        columns = {f"goodput-q-{_percent(level)}": level for level in quantiles}
        return self._frame(h, columns)

    def predict(self, h: int, level: Sequence[float] = ()) -> Any:
        """A frame of `unique_id`, `ds`, the median `goodput`, and for each level of `level`, in percent, the bounds
        `goodput-lo-80` and `goodput-hi-80` of the central interval that holds the value with this probability."""
        columns = {"goodput": 0.5}
        for percent in level:
            if not 0 < percent < 100:
                raise ValueError(f"level has {percent}, expected percent above 0 and below 100")
            columns[f"goodput-lo-{percent:g}"] = 0.5 - percent / 200.0
            columns[f"goodput-hi-{percent:g}"] = 0.5 + percent / 200.0
        return self._frame(h, columns)

    def save(self, folder: str | os.PathLike[str]) -> dict[Any, Path]:
        """Writes a file for each series into a folder, `0.json` and so on, and returns the files by `unique_id`."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        files = {name: Path(folder) / f"{at}.json" for at, name in enumerate(self._series)}
        for name, file in files.items():
            self._series[name].save(file)
        return files

    def _frame(self, h: int, columns: dict[str, float]) -> Any:
        levels = sorted(set(columns.values()))
        names, times, rows = [], [], []
        for name, forecaster in self._series.items():
            names += [name] * h
            times.append(forecaster.times(h))
            rows.append(forecaster.quantiles(h, levels))
        table = np.concatenate(rows)
        values = {column: table[:, levels.index(level)] for column, level in columns.items()}
        return self._frames.frame(names, np.concatenate(times), values)


def fit(
    frame: Any,
    *,
    step_secs: float | None = None,
    models: Sequence[str] = (),
    day_steps: int | None = None,
    horizon_steps: int | None = None,
) -> Forecasters:
    """Fits a forecaster to every series of a frame of `unique_id`, `ds` (times; UTC where they have no zone) and `y`.

    Steps without a row, and values that are missing, are gaps. `step_secs` is the smallest distance of two times of a
    series where it is left out. The other parameters are those of `Forecaster.fit`.
    """
    given = None if step_secs is None else _step_millis(step_secs)
    frames = Frames.of(frame)
    series = {}
    for name, (times, values) in frames.series(frame).items():
        step = _smallest_step(name, times) if given is None else given
        first = int(times.min())
        series[name] = Forecaster.fit(
            _at_steps(name, times, values, step, first),
            start=first,
            step_secs=step / 1000.0,
            models=models,
            day_steps=day_steps,
            horizon_steps=horizon_steps,
        )
    if not series:
        raise ValueError(f"the frame has no rows; expected {', '.join(COLUMNS)}")
    return Forecasters(series, frames)


def _step_millis(step_secs: float) -> int:
    """Milliseconds of a step, which are whole."""
    millis = step_secs * 1000.0
    # A thousandth of 1001 has no exact float: 1.001 * 1000 is less than 1001.
    if not 1.0 <= millis < math.inf or abs(millis - round(millis)) > 1e-6 * millis:
        raise ValueError(f"step_secs is {step_secs}, expected whole milliseconds above 0")
    return round(millis)


def _smallest_step(name: Any, times: NDArray[np.int64]) -> int:
    apart = np.diff(np.sort(times))
    if len(apart) == 0 or apart.min() == 0:
        raise ValueError(f"unique_id {name!r}: a series needs two times or step_secs, and every time once")
    return int(apart.min())


def _at_steps(
    name: Any, times: NDArray[np.int64], values: NDArray[np.float64], step: int, first: int
) -> NDArray[np.float64]:
    """Values at even steps from `first` on; NaN where no row has the time."""
    steps, off = np.divmod(times - first, step)
    if off.any():
        odd = np.datetime64(int(times[off.argmax()]), "ms")
        raise ValueError(f"unique_id {name!r}: {odd} is no whole number of steps of {step / 1000:g} s from the first")
    if steps.min() < 0:
        raise ValueError(f"unique_id {name!r}: {np.datetime64(int(times.min()), 'ms')} is known already")
    if len(np.unique(steps)) < len(steps):
        raise ValueError(f"unique_id {name!r} has a time more than once")
    if steps.max() >= _MOST_STEPS:
        last = np.datetime64(int(times.max()), "ms")
        raise ValueError(
            f"unique_id {name!r}: {last} is {steps.max()} steps of {step / 1000:g} s from the first; "
            "give step_secs, or take the stray row away"
        )
    even = np.full(int(steps.max()) + 1, np.nan)
    even[steps] = values
    return even


def _percent(level: float) -> str:
    return f"{100.0 * level:.10g}"


def _epoch_millis(start: "datetime | np.datetime64 | int") -> int:
    if isinstance(start, datetime):
        aware = start if start.tzinfo is not None else start.replace(tzinfo=timezone.utc)
        return round(aware.timestamp() * 1000.0)
    if isinstance(start, np.datetime64):
        return int(start.astype("datetime64[ms]").astype(np.int64))
    return int(start)
