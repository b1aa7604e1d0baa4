"""Forecasters: the numbers of the command line, online updates, and frames of pandas and polars."""

import os
import pickle
import subprocess

import numpy as np
import pytest

from goodput_gym import forecast
from goodput_gym.forecast import Forecaster, fit

HOUR = 3600
START = np.datetime64("2026-03-02T00:00", "ms")


def load(hours, shift=0.0):
    """A load with a daily season and noise."""
    random = np.random.default_rng(3)
    at = np.arange(hours)
    return 100.0 + shift + 40.0 * np.sin(2 * np.pi * at / 24) + random.normal(0.0, 3.0, hours)


def fitted(values, **options):
    return Forecaster.fit(values, start=START, **{"step_secs": HOUR, **options})


def test_it_knows_the_season_and_its_errors():
    values = load(24 * 21)
    forecaster = fitted(values[:-24])
    quantiles = forecaster.quantiles(24, [0.05, 0.5, 0.95])
    assert quantiles.shape == (24, 3) and (np.diff(quantiles, axis=1) >= 0).all()
    assert np.abs(quantiles[:, 1] - values[-24:]).mean() < 6.0
    inside = (quantiles[:, 0] <= values[-24:]) & (values[-24:] <= quantiles[:, 2])
    assert inside.mean() > 0.75
    assert forecaster.times(2).tolist() == (START + np.arange(480, 482) * np.timedelta64(1, "h")).tolist()
    assert forecaster.day_steps == 24 and forecaster.step_secs == HOUR


def test_values_that_come_one_by_one_and_together_are_alike():
    values = load(24 * 12)
    one, other = fitted(values[:200]), fitted(values[:200])
    other.update(values[200:230])
    for value in values[200:230]:
        one.update([value])
    assert np.array_equal(one.quantiles(5, [0.1, 0.9]), other.quantiles(5, [0.1, 0.9]))
    assert one.times(1) == START + np.timedelta64(230, "h")
    before = other.quantiles(5, [0.5])
    twin = pickle.loads(pickle.dumps(other))
    other.refresh()
    assert not np.array_equal(before, other.quantiles(5, [0.5])) and np.array_equal(before, twin.quantiles(5, [0.5]))


def test_models_can_be_chosen():
    values = load(24 * 10)
    last = fitted(values, models=["naive"]).quantiles(3, [0.5])
    assert np.allclose(last, values[-1], atol=15.0)
    assert len(forecast.MODELS) == 15 and "week" in forecast.MODELS
    with pytest.raises(ValueError, match="no model 'arima'|no model \"arima\""):
        fitted(values, models=["arima"])


@pytest.mark.skipif("GOODPUT" not in os.environ, reason="GOODPUT, the path of the program, is not set")
def test_the_command_line_has_these_numbers(tmp_path):
    values = load(24 * 15)
    values[100:103] = np.nan
    rows = [f"{START + np.timedelta64(at, 'h')},{'' if np.isnan(value) else repr(float(value))}" for at, value in enumerate(values)]
    (tmp_path / "load.csv").write_text("time,load\n" + "\n".join(rows) + "\n")
    (tmp_path / "study.toml").write_text('[series]\npath = "load.csv"\n')

    def goodput(*arguments):
        done = subprocess.run([os.environ["GOODPUT"], *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    goodput("forecast", "fit", "study.toml", "--to", "fitted.json")
    ours = fitted(values)
    ours.save(tmp_path / "ours.json")
    assert (tmp_path / "ours.json").read_bytes() == (tmp_path / "fitted.json").read_bytes()
    theirs = Forecaster.load(tmp_path / "fitted.json")
    levels = [0.1, 0.5, 0.9]
    assert np.array_equal(theirs.quantiles(12, levels), ours.quantiles(12, levels))
    table = goodput("forecast", "predict", "ours.json", "--hours", "12", "--levels", "0.1,0.5,0.9", "-o", "csv")
    printed = np.array([row.split(",") for row in table.splitlines()[1:]], dtype=np.float64)
    assert np.array_equal(printed[::3, 0].astype(np.int64), ours.times(12).astype(np.int64))
    assert np.allclose(printed[:, 2].reshape(12, 3), ours.quantiles(12, levels), rtol=0, atol=5.1e-7)


def frame(library, names=("a", "b"), hours=24 * 12, first=0):
    columns = {"unique_id": [], "ds": [], "y": []}
    for at, name in enumerate(names):
        values = load(24 * 14, 50.0 * at)[first : first + hours]
        columns["unique_id"] += [name] * len(values)
        columns["ds"].append(START + np.arange(first, first + len(values)) * np.timedelta64(1, "h"))
        columns["y"].append(values)
    return library.DataFrame({
        "unique_id": columns["unique_id"],
        "ds": np.concatenate(columns["ds"]),
        "y": np.concatenate(columns["y"]),
    })


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_frames_go_in_and_come_out(name, tmp_path):
    library = pytest.importorskip(name)
    panel = fit(frame(library))
    assert list(panel) == ["a", "b"]
    out = panel.predict(6, level=[80])
    assert isinstance(out, library.DataFrame)
    assert list(out.columns) == ["unique_id", "ds", "goodput", "goodput-lo-80", "goodput-hi-80"]
    alone = fitted(load(24 * 12)).quantiles(6, [0.1, 0.5, 0.9])
    rows = out[["goodput-lo-80", "goodput", "goodput-hi-80"]].to_numpy()
    assert np.array_equal(rows[:6], alone) and not np.array_equal(rows[6:], alone)
    times = out["ds"].to_numpy().astype("datetime64[ms]")
    assert np.array_equal(times[:6], START + np.arange(288, 294) * np.timedelta64(1, "h"))
    quantiles = panel.quantiles(6, [0.1, 0.975])
    assert list(quantiles.columns) == ["unique_id", "ds", "goodput-q-10", "goodput-q-97.5"]

    panel.update(frame(library, ["b"], 10, first=24 * 12))
    assert np.array_equal(panel["a"].quantiles(6, [0.5]), alone[:, 1:2])
    assert panel["b"].times(1)[0] == START + np.timedelta64(24 * 12 + 10, "h")
    with pytest.raises(ValueError, match="is known already"):
        panel.update(frame(library, ["a", "b"], 10, first=24 * 11))
    assert panel["a"].times(1)[0] == START + np.timedelta64(24 * 12, "h"), "nothing is taken in"
    with pytest.raises(KeyError, match="'c'"):
        panel.update(frame(library, ["c"], 10, first=24 * 12))
    files = panel.save(tmp_path / "fitted")
    assert np.array_equal(Forecaster.load(files["b"]).quantiles(3, [0.5]), panel["b"].quantiles(3, [0.5]))


def test_a_step_without_a_row_is_a_gap():
    pandas = pytest.importorskip("pandas")
    whole = frame(pandas, ["a"])
    holes = whole.drop(index=[50, 51, 120])
    values = load(24 * 12)
    values[[50, 51, 120]] = np.nan
    assert np.array_equal(fit(holes)["a"].quantiles(6, [0.5]), fitted(values).quantiles(6, [0.5]))
    zoned = whole.assign(ds=whole["ds"].dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin"))
    assert np.array_equal(fit(zoned)["a"].quantiles(6, [0.5]), fit(whole)["a"].quantiles(6, [0.5]))
    assert np.array_equal(fit(zoned)["a"].times(1), fit(whole)["a"].times(1))


def test_steps_are_milliseconds_without_an_exact_float():
    pandas = pytest.importorskip("pandas")
    whole = frame(pandas, ["a"])
    steps = pandas.to_timedelta(1001 * np.arange(len(whole)), unit="ms")
    assert 1001 / 1000 * 1000 < 1001
    fitted = fit(whole.assign(ds=pandas.Timestamp("2026-01-01") + steps), day_steps=24)
    assert fitted["a"].step_secs == 1.001


def test_what_is_wrong_is_said():
    pandas = pytest.importorskip("pandas")
    whole = frame(pandas, ["a"])
    with pytest.raises(ValueError, match="no column y"):
        fit(whole.rename(columns={"y": "load"}))
    with pytest.raises(TypeError, match="expected times"):
        fit(whole.assign(ds=range(len(whole))))
    with pytest.raises(ValueError, match="more than once"):
        fit(pandas.concat([whole, whole.tail(1)]), step_secs=HOUR)
    with pytest.raises(ValueError, match="no whole number of steps"):
        fit(whole, step_secs=2 * HOUR)
    for step_secs in (0, 0.0004, 1.0005, -HOUR, float("nan"), float("inf")):
        for wrong in (lambda: fit(whole, step_secs=step_secs), lambda: fitted(load(100), step_secs=step_secs)):
            with pytest.raises(ValueError, match="expected whole milliseconds above 0"):
                wrong()
    stray = whole.tail(1).assign(ds=whole["ds"].iloc[0] + pandas.Timedelta(days=20_000))
    with pytest.raises(ValueError, match="take the stray row away"):
        fit(pandas.concat([whole, stray]), step_secs=1)
    with pytest.raises(TypeError, match="DataFrame of pandas or polars"):
        fit({"y": [1.0]})
    forecaster = fitted(load(100))
    for levels in ([0.9, 0.1], [0.0], [1.0]):
        with pytest.raises(ValueError, match="level"):
            forecaster.quantiles(3, levels)
    with pytest.raises(ValueError, match="give day_steps"):
        Forecaster.fit(load(100), start=0, step_secs=5 * HOUR)
    with pytest.raises(ValueError, match="nothing|measured"):
        fitted(np.full(50, np.nan))
    with pytest.raises(ValueError, match="no fitted forecaster"):
        forecaster.__setstate__("{}")
