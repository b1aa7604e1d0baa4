"""Sweeps on Ray: a task for each cell that `goodput sweep plan` listed."""

import json
import os
from pathlib import Path
from typing import Any

from goodput_gym._program import ProgramKilled, goodput
from goodput_gym._runs import Run, read_run


def sweep(
    folder: str | os.PathLike[str],
    address: str | None = "auto",
    *,
    program: str | None = None,
    retries: int = 3,
    cpus_per_cell: float = 1.0,
) -> Run:
    """Runs the cells of a planned sweep on a cluster of Ray, merges them, and opens the result.

        goodput sweep plan STUDY.toml --to DIR                    # in a shell
        goodput_gym.sweep("DIR").polars("runs")                   # then, in Python

    A cell is one policy on one workload with one seed. Cells that are stored already do not run again, so that an
    interrupted sweep goes on where it was. A cell whose machine dies runs elsewhere. The merged files are equal byte
    for byte to those of one process, whatever the machines did.

    Parameters
    ----------
    folder
        Folder of `goodput sweep plan`, on a file system that all machines of the cluster see under this path.
    address
        Address of the cluster, as `ray.init` takes it; `"auto"` finds the one of this machine, and None starts one.
        Without meaning where Ray is connected already.
    program
        Path of the program `goodput` on the machines. By default the variable `GOODPUT`, the program beside this
        Python, or the one on the search path.
    retries
        How often a cell is tried again after its machine died or the program was killed. An error that the program
        reports ends the sweep at once.
    cpus_per_cell
        Processors that Ray sets apart for a cell. A cell runs on one thread.
    """
    import ray

    path = Path(folder).resolve()
    plan = json.loads((path / "plan.json").read_text(encoding="utf-8"))
    missing = [cell for cell in plan["cells"] if not (path / "cells" / f"{cell['key']}.parquet").exists()]
    # The longest cells begin first, so that none of them runs alone at the end.
    missing.sort(key=lambda cell: -cell["cost_secs"])
    if not ray.is_initialized():
        ray.init(address=address)
    remote: Any = ray.remote
    task = remote(num_cpus=cpus_per_cell, max_retries=retries, retry_exceptions=[ProgramKilled])(_run_cell)
    waiting = [task.remote(str(path), cell["key"], program, os.getcwd()) for cell in missing]
    try:
        while waiting:
            done, waiting = ray.wait(waiting)
            ray.get(done)
    except BaseException:
        for other in waiting:
            ray.cancel(other)
        raise
    goodput(program, "sweep", "merge", str(path))
    return read_run(path)


def _run_cell(folder: str, key: str, program: str | None, here: str) -> None:
    """Runs one cell in a process of its own, which leaves Python's lock alone."""
    goodput(program, "sweep", "run", folder, "--cells", key, "-j", "1", here=here)
