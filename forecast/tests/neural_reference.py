"""The five nets written down a second time, plainly and from their papers, in double precision: `python3 neural_reference.py > neural_reference.json`.

Weights are 0.3 sin(1.7 i + 0.3), i their position in the flat vector; a test feeds the same window to the Rust nets.
"""

import json
from math import exp, log, log1p, sin, sqrt, floor

LOOKBACK, HORIZON, LEVELS = 12, 6, 3
WINDOW = [100 + 20 * sin(0.9 * t) + 3 * ((7 * t) % 5) for t in range(LOOKBACK)]


class Weights:
    def __init__(self):
        self.at = 0

    def matrix(self, rows, columns):
        start, self.at = self.at, self.at + rows * columns
        value = lambda i: 0.3 * sin(1.7 * i + 0.3)
        return [[value(start + r * columns + c) for c in range(columns)] for r in range(rows)]


def times(x, w):
    return [sum(x[i] * w[i][j] for i in range(len(x))) for j in range(len(w[0]))]


def plus(a, b):
    return [x + y for x, y in zip(a, b)]


def affine(weights, x, outputs):
    w = weights.matrix(len(x), outputs)
    return plus(times(x, w), weights.matrix(1, outputs)[0])


def relu(x):
    return [max(v, 0.0) for v in x]


def sigmoid(x):
    return 1 / (1 + exp(-x))


def tanh(x):
    return (exp(x) - exp(-x)) / (exp(x) + exp(-x))


def dlinear(x, kernel=5):
    w, half = Weights(), kernel // 2
    padded = [x[0]] * half + x + [x[-1]] * half
    trend = [sum(padded[t:t + kernel]) / kernel for t in range(len(x))]
    rest = [a - b for a, b in zip(x, trend)]
    return plus(affine(w, trend, HORIZON * LEVELS), affine(w, rest, HORIZON * LEVELS))


def lstm(x, hidden=4, chunk=3):
    w = Weights()
    gates = [(w.matrix(chunk, hidden), w.matrix(hidden, hidden), w.matrix(1, hidden)[0]) for _ in range(4)]
    h, c = [0.0] * hidden, [0.0] * hidden
    for start in range(0, len(x), chunk):
        i, f, o, g = [plus(plus(times(x[start:start + chunk], wx), times(h, wh)), b) for wx, wh, b in gates]
        c = [sigmoid(f[k]) * c[k] + sigmoid(i[k]) * tanh(g[k]) for k in range(hidden)]
        h = [sigmoid(o[k]) * tanh(c[k]) for k in range(hidden)]
    return affine(w, h, HORIZON * LEVELS)


def interpolate(knots, steps):
    """Linear, as torch.nn.functional.interpolate(mode="linear", align_corners=False)."""
    out = []
    for step in range(steps):
        at = min(max((step + 0.5) * len(knots) / steps - 0.5, 0.0), len(knots) - 1.0)
        low = floor(at)
        high = min(low + 1, len(knots) - 1)
        out.append(knots[low] + (at - low) * (knots[high] - knots[low]))
    return out


def nhits(x, pools=(4, 2, 1), rates=(6, 3, 1), width=5, layers=2):
    w, rest, out = Weights(), list(x), [0.0] * (HORIZON * LEVELS)
    for pool, rate in zip(pools, rates):
        z = [max(rest[t:t + pool]) for t in range(0, len(rest), pool)]
        for _ in range(layers):
            z = relu(affine(w, z, width))
        backcast = affine(w, z, max(LOOKBACK // rate, 1))
        knots = max(HORIZON // rate, 1)
        forecast = affine(w, z, knots * LEVELS)
        rest = [a - b for a, b in zip(rest, interpolate(backcast, LOOKBACK))]
        levels = [interpolate(forecast[k * knots:(k + 1) * knots], HORIZON) for k in range(LEVELS)]
        out = plus(out, sum(levels, []))
    return out


def patchtst(x, patch=4, stride=2, width=4, heads=2, hidden=6, layers=2):
    w = Weights()
    padded = x + [x[-1]] * stride
    patches = [padded[t:t + patch] for t in range(0, len(padded) - patch + 1, stride)]
    we, be = w.matrix(patch, width), w.matrix(1, width)[0]
    positions = w.matrix(len(patches), width)
    words = [plus(plus(times(p, we), be), position) for p, position in zip(patches, positions)]

    def norm(rows):
        gain, bias = w.matrix(1, width)[0], w.matrix(1, width)[0]
        out = []
        for row in rows:
            mean = sum(row) / width
            variance = sum((v - mean) ** 2 for v in row) / width
            out.append([(v - mean) / sqrt(variance + 1e-5) * g + b for v, g, b in zip(row, gain, bias)])
        return out

    def each(rows, outputs):
        matrix, bias = w.matrix(len(rows[0]), outputs), w.matrix(1, outputs)[0]
        return [plus(times(row, matrix), bias) for row in rows]

    for _ in range(layers):
        normed = norm(words)
        q, k, v = each(normed, width), each(normed, width), each(normed, width)
        size, mixed = width // heads, [[] for _ in words]
        for head in range(heads):
            part = slice(head * size, (head + 1) * size)
            for n, query in enumerate(q):
                scores = [exp(sum(a * b for a, b in zip(query[part], key[part])) / sqrt(size)) for key in k]
                shares = [s / sum(scores) for s in scores]
                mixed[n] += [sum(s * value[part][j] for s, value in zip(shares, v)) for j in range(size)]
        words = [plus(a, b) for a, b in zip(words, each(mixed, width))]
        z = [relu(row) for row in each(norm(words), hidden)]
        words = [plus(a, b) for a, b in zip(words, each(z, width))]
    return affine(w, sum(norm(words), []), HORIZON * LEVELS)


def asinh(x):
    return log(x + sqrt(x * x + 1)) if x >= 0 else -log(-x + sqrt(x * x + 1))


def global_net(x, day=4, width=5, layers=2, horizon=3):
    """The net of all series, a step after the other: shares of copies of the past, and a correction."""
    known = len(x)
    at = lambda index: x[min(max(index, 0), known - 1)]
    mean = lambda end, steps: sum(x[end - steps:end]) / steps
    steps_of_level = min(6, day)
    outputs = []
    for h in range(horizon):
        same = lambda back: known + h - back * day
        inputs = [at(known - 1 - lag) for lag in (1, 2, 3, 4, 5, 6, 8, 11, 14, 18, 24, 36, 72)]
        inputs += [mean(known - back * day, day) for back in range(7)]
        inputs += [mean(known, steps_of_level)]
        inputs += [at(same(back) + offset) for back in range(1, 8) for offset in range(-3, 4)]
        ahead = (h + 1) / day
        inputs += [ahead, sqrt(ahead), exp(-24 * ahead), exp(-6 * ahead)]
        copies = [at(same(back)) for back in range(1, 8)]
        for back in range(1, 8):
            then = max(known - back * day, steps_of_level)
            copies.append(at(same(back)) + mean(known, steps_of_level) - mean(then, steps_of_level))
        copies.append(at(known - 1))
        w, z = Weights(), [asinh(v) for v in inputs + copies]
        for _ in range(layers):
            z = relu(affine(w, z, width))
        answer = affine(w, z, len(copies) + LEVELS)
        shares = [exp(score) for score in answer[:len(copies)]]
        levels = [value - 2.5 for value in answer[len(copies):]]
        levels[1] += 2.5 + sum(s * c for s, c in zip(shares, copies)) / sum(shares)
        outputs.append(levels)
    return [outputs[h][level] for level in range(LEVELS) for h in range(horizon)]


def head(raw):
    steps = len(raw) // LEVELS
    low, median, high = [raw[level * steps:(level + 1) * steps] for level in range(LEVELS)]
    below = [m - log1p(exp(v)) for m, v in zip(median, low)]
    above = [m + log1p(exp(v)) for m, v in zip(median, high)]
    return below + median + above


mean = sum(WINDOW) / LOOKBACK
spread = sqrt(sum((v - mean) ** 2 for v in WINDOW) / LOOKBACK)
inward = [(v - WINDOW[-1]) / spread for v in WINDOW]
nets = {"dlinear": dlinear, "lstm": lstm, "nhits": nhits, "patchtst": patchtst}
outward = lambda raw: [WINDOW[-1] + v * spread for v in head(raw)]


def of_all_series():
    days = [50 + 30 * sin(1.6 * t) + 4 * ((5 * t) % 7) for t in range(28)]
    mean = sum(days) / len(days)
    spread = sqrt(sum((v - mean) ** 2 for v in days) / len(days))
    raw = head(global_net([(v - days[-1]) / spread for v in days]))
    return {"window": days, "quantiles": [days[-1] + v * spread for v in raw]}


quantiles = {name: outward(net(inward)) for name, net in nets.items()}
print(json.dumps({"window": WINDOW, "quantiles": quantiles, "global": of_all_series()}))
