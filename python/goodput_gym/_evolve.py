"""Evolution on Ray: a training that workers on the machines of a cluster help."""

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from goodput_gym._program import ProgramKilled, check, found, goodput
from goodput_gym._runs import Run, read_run


def evolve(
    config: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    address: str | None = "auto",
    *,
    workers: int,
    cpus_per_worker: int = 1,
    sets: Sequence[str] = (),
    program: str | None = None,
    retries: int = 3,
) -> Run:
    """Trains an experiment with `[agent.evolution]` on a cluster of Ray, and opens the result.

        goodput_gym.evolve("elastic.toml", "/shared/run", workers=20).polars("runs")

    This process starts `goodput train --distributed`, which searches, and Ray starts the workers, which play the
    episodes. The policy is equal byte for byte to that of one process, whatever the machines did. A training that was
    stopped goes on where it was when the function is called again.

    Parameters
    ----------
    config
        Experiment file. Of a training that goes on, the configuration in `folder` counts.
    folder
        Directory of the run, on a file system that all machines of the cluster see under this path.
    address
        Address of the cluster, as `ray.init` takes it; `"auto"` finds the one of this machine, and None starts one.
        Without meaning where Ray is connected already.
    workers
        Number of workers. Those for which the cluster has no processor start late, which changes nothing but the time.
    cpus_per_worker
        Threads of a worker, and the processors that Ray sets apart for it.
    sets
        Values of the file to change, `"KEY=VALUE"` each.
    program
        Path of the program `goodput` on the machines. By default the variable `GOODPUT`, the program beside this
        Python, or the one on the search path.
    retries
        How often a worker is started again after its machine died or the program was killed. An error that the program
        reports ends the training.
    """
    import ray

    path = Path(folder).resolve()
    # The last word of an earlier session would end the workers of this one.
    (path / "spool" / "now.json").unlink(missing_ok=True)
    changed = [word for value in sets for word in ("--set", value)]
    begin = [os.fspath(config), *changed, "--run-dir", str(path)]
    what = ["--resume", str(path)] if (path / "config.toml").exists() else begin
    command = ("train", *what, "--distributed", "-j", "1")
    if not ray.is_initialized():
        ray.init(address=address)
    remote: Any = ray.remote
    task = remote(num_cpus=cpus_per_worker, max_retries=retries, retry_exceptions=[ProgramKilled])(_work)
    waiting: list[Any] = []
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        training = subprocess.Popen([found(program), *command], stdout=subprocess.DEVNULL, stderr=said)
        try:
            waiting = [task.remote(str(path), cpus_per_worker, program, os.getcwd()) for _ in range(workers)]
            while training.poll() is None:
                done, waiting = ray.wait(waiting, timeout=0.2) if waiting else ([], [])
                ray.get(done)
                time.sleep(0.05)
            said.seek(0)
            check(command, training.returncode, said.read())
        finally:
            if training.poll() is None:
                training.kill()
            training.wait()
            for other in waiting:
                ray.cancel(other)
    return read_run(path)


def _work(folder: str, threads: int, program: str | None, here: str) -> None:
    """Runs a worker in the folder in which the training was started, to which paths in the experiment are relative."""
    goodput(program, "train", "work", folder, "-j", str(threads), here=here)
