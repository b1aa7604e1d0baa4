"""A picture of an environment: nodes by time, a bar for each stay of a job. Needs matplotlib, the extra `render`."""

import colorsys
from typing import Any

import numpy as np
from numpy.typing import NDArray

MODES = ("ansi", "rgb_array", "gantt")
"""Ways to render."""

SIZE_INCHES, DOTS_PER_INCH = (11.0, 6.5), 100


def check_mode(mode: str | None) -> None:
    """Refuses a mode that there is not, or that needs a library that is not installed."""
    if mode is not None and mode not in MODES:
        raise ValueError(f"render_mode is {mode!r}, expected None, {', '.join(map(repr, MODES))}")
    if is_picture(mode):
        try:
            import matplotlib  # noqa: F401
        except ImportError as error:
            raise ImportError(f"render_mode {mode!r} needs matplotlib: pip install 'goodput-gym[render]'") from error


def is_picture(mode: str | None) -> bool:
    """Whether a mode draws, and needs the stays of jobs."""
    return mode in ("rgb_array", "gantt")


def render(core: Any, at: int, mode: str | None) -> Any:
    """Environment `at` as text, as pixels (uint8, `(650, 1100, 3)`) or as a figure of matplotlib."""
    if mode is None:
        return None
    if mode == "ansi":
        return core.text(at)
    figure = draw(*core.picture(at))
    return figure if mode == "gantt" else pixels(figure)


def pixels(figure: Any) -> NDArray[np.uint8]:
    """A figure as uint8 of shape `(height, width, 3)`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def draw(
    now: float,
    nodes: list[tuple[str, int]],
    stays: list[tuple[int, int, int, float, float | None]],
    waiting: list[tuple[float, int]],
    applications: list[str],
) -> Any:
    """The figure: above, a lane for each accelerator, node by node; below, the number of jobs that wait."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE_INCHES, dpi=DOTS_PER_INCH, layout="constrained")
    chart, queue = figure.subplots(2, 1, sharex=True, height_ratios=[5, 1])
    first = np.concatenate([[0], np.cumsum([gpus for _, gpus in nodes])]).astype(int)
    bars = _bars(nodes, stays, now)
    _draw_bars(chart, bars, first, now, applications)
    _draw_nodes(chart, nodes, first)
    held = sum(gpus for _, _, gpus, _, to in stays if to is None)
    running = len({job for job, _, _, _, to in stays if to is None})
    jobs = waiting[-1][1] if waiting else 0
    chart.set_title(
        f"{now:.1f} h    {held} of {first[-1]} accelerators held    jobs: {running} running, {jobs} waiting", loc="left"
    )
    if waiting:
        hours, counts = zip(*waiting)
        queue.fill_between([*hours, now], [*counts, counts[-1]], step="post", color="0.45", linewidth=0)
    queue.set_ylim(bottom=0, top=max([1.2] + [1.15 * count for _, count in waiting]))
    queue.set_ylabel("jobs that\nwait")
    queue.yaxis.get_major_locator().set_params(integer=True, nbins=4)
    queue.set_xlabel("hours since the beginning of the workload")
    queue.set_xlim(0.0, max(now, 0.1))
    for axes in (chart, queue):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


Bar = tuple[int, int, int, int, float, float]
"""Job, node, first lane on it, number of lanes, hours from and to."""


def _bars(
    nodes: list[tuple[str, int]], stays: list[tuple[int, int, int, float, float | None]], now: float
) -> list[Bar]:
    """Lanes for stays, the lowest that are free together; a stay that finds none together gets several bars.

    The simulator counts the accelerators of a node and does not number them, so that lanes are of the picture alone.
    """
    until = [np.full(gpus, -np.inf) for _, gpus in nodes]
    bars: list[Bar] = []
    for job, node, gpus, begin, end in sorted(stays, key=lambda stay: (stay[3], stay[0])):
        free = np.flatnonzero(until[node] <= begin + 1e-9)
        together = [at for at in free if np.isin(np.arange(at, at + gpus), free).all()]
        chosen = np.arange(together[0], together[0] + gpus) if together else free[:gpus]
        until[node][chosen] = np.inf if end is None else end
        for lanes in np.split(chosen, np.flatnonzero(np.diff(chosen) > 1) + 1):
            if len(lanes):
                bars.append((job, node, int(lanes[0]), len(lanes), begin, now if end is None else end))
    return bars


def _draw_bars(chart: Any, bars: list[Bar], first: NDArray[np.int64], now: float, applications: list[str]) -> None:
    from matplotlib.collections import PolyCollection

    corners, colours = [], []
    whole = max(now, 0.1)
    for job, node, lane, lanes, begin, end in bars:
        low, high = first[node] + lane + 0.06, first[node] + lane + lanes - 0.06
        corners.append([(begin, low), (end, low), (end, high), (begin, high)])
        colours.append(_colour(job))
        name = applications[job] if job < len(applications) else ""
        # Ten dots a letter, on a chart of some thousand dots.
        room = (end - begin) / whole * 1000 / 7
        tall = (high - low) / max(first[-1], 1) * 450
        label = next((text for text in (f"{job} {name}".strip(), str(job)) if len(text) + 1 < room), "")
        if label and tall >= 9:
            chart.text((begin + end) / 2, (low + high) / 2, label, ha="center", va="center", fontsize=7, clip_on=True)
    chart.add_collection(PolyCollection(corners, facecolors=colours, edgecolors="white", linewidths=0.4))


def _draw_nodes(chart: Any, nodes: list[tuple[str, int]], first: NDArray[np.int64]) -> None:
    """Names of nodes, and a line between two of them."""
    chart.set_ylim(first[-1], 0)
    every = max(1, -(-len(nodes) // 32))
    kinds = len({kind for kind, _ in nodes})
    marks, names = [], []
    for node, (kind, gpus) in enumerate(nodes):
        if node and len(nodes) <= 64:
            chart.axhline(first[node], color="0.8", linewidth=0.6, zorder=0)
        if node % every == 0:
            marks.append(first[node] + gpus / 2)
            names.append(f"node {node}" + (f" ({kind})" if kinds > 1 else ""))
    chart.set_yticks(marks, names, fontsize=8)
    chart.tick_params(axis="y", length=0)


def _colour(job: int) -> tuple[float, float, float]:
    """A light colour of a job; those of two jobs that follow one another are far apart."""
    return colorsys.hls_to_rgb((job * 0.618034) % 1.0, (0.68, 0.78)[job % 2], 0.62)
