"""Independent figures for `real_series.rs`: seasonal naive on Taylor's half-hourly demand, by numpy alone.

Run: python forecast/tests/taylor_seasonal_naive.py ../shared/data/load/taylor_halfhourly_MW.csv   (numpy 2.4.6)
"""
import sys

import numpy as np

y = np.loadtxt(sys.argv[1], skiprows=1)


def spread(history, m, level):
    e = np.sort(history[m:] - history[:-m])
    return np.quantile(e, level) - np.median(e)


def show(name, actual, point, low, high, scale):
    e = np.abs(actual - point)
    pinball = lambda q, tau: np.mean(np.maximum(tau * (actual - q), (tau - 1) * (actual - q)))
    figures = dict(mae=e.mean(), rmse=np.sqrt((e**2).mean()), wape=e.sum() / actual.sum(),
                   smape=np.mean(200 * e / (actual + point)), mase=e.mean() / scale,
                   pinball_10=pinball(low, 0.1), pinball_90=pinball(high, 0.9),
                   coverage_10=np.mean(actual <= low), coverage_90=np.mean(actual <= high))
    print(name, {key: float(f"{value:.12g}") for key, value in figures.items()})


# Weekly season, fitted on ten weeks, the last two weeks in one forecast: the second week is two seasons ahead.
m, n = 336, 3360
point = np.tile(y[n - m:n], 2)
k = np.repeat([1.0, 2.0], m)
show("weekly", y[n:], point, point + np.sqrt(k) * spread(y[:n], m, 0.1), point + np.sqrt(k) * spread(y[:n], m, 0.9),
     np.abs(y[m:n] - y[:n - m]).mean())

# Daily season, a day ahead every 12 hours, refitted at every origin.
m = 48
origins = range(n, len(y) - m + 1, 24)
actual = np.concatenate([y[o:o + m] for o in origins])
point = np.concatenate([y[o - m:o] for o in origins])
low, high = (np.concatenate([y[o - m:o] + spread(y[:o], m, level) for o in origins]) for level in (0.1, 0.9))
show("daily", actual, point, low, high, np.abs(y[m:n] - y[:n - m]).mean())
