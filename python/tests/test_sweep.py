"""A planned sweep on Ray: one process, and several machines of which one dies, write equal files."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed")

import ray  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

import goodput_gym  # noqa: E402

GOODPUT = os.environ.get("GOODPUT", "")
KNOWS = GOODPUT and subprocess.run([GOODPUT, "sweep", "--help"], capture_output=True).returncode == 0
pytestmark = pytest.mark.skipif(not KNOWS, reason="GOODPUT is not the path of a program that knows `sweep`")
QUICKSTART = Path(__file__).resolve().parents[2] / "configs/experiment/quickstart.toml"
MERGED = ("summary.json", "report.html", "runs.parquet", "jobs.parquet", "usage.parquet", "tenants.csv")


def goodput(*arguments):
    done = subprocess.run([GOODPUT, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def plan(folder):
    """Twenty-four cells: three policies on eight workloads."""
    sizes = ["--policies", "fifo,srtf,tiresias", "--seeds", "8", "--set", "workload.synthetic.diurnal.jobs=30"]
    goodput("sweep", "plan", QUICKSTART, *sizes, "--to", folder)


def stored(folder):
    return list((folder / "cells").glob("*.parquet"))


def in_the_background(*arguments, **options):
    """`goodput_gym.sweep` in a thread, and a list that gets its error."""
    errors = []

    def run():
        try:
            goodput_gym.sweep(*arguments, **options)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, errors


def slow_program(folder, seconds):
    """The program behind a pause, so that a machine can die in the middle of a cell."""
    script = folder / "slow"
    script.write_text(f'#!/bin/sh\nsleep {seconds}\nexec "{GOODPUT}" "$@"\n')
    script.chmod(0o755)
    return str(script)


def test_a_machine_dies_and_the_files_are_those_of_one_process(tmp_path):
    one, many = tmp_path / "one", tmp_path / "many"
    plan(one), plan(many)
    goodput("sweep", "run", one, "-j", "1")
    goodput("sweep", "merge", one)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(3)]
    ray.init(address=cluster.address, logging_level="ERROR")
    try:
        thread, errors = in_the_background(many, program=slow_program(tmp_path, 1.0))
        while thread.is_alive() and len(stored(many)) < 4:
            time.sleep(0.05)
        assert thread.is_alive(), errors
        cluster.remove_node(nodes[1], allow_graceful=False)
        begun = len(stored(many))
        thread.join(timeout=240)
        assert not thread.is_alive() and not errors, errors
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert begun < 24 and len(stored(many)) == 24
    for name in MERGED:
        assert (one / name).read_bytes() == (many / name).read_bytes(), name
    # Nothing is left to run, so that nothing runs.
    before = {cell: cell.stat().st_mtime_ns for cell in stored(many)}
    ray.init(num_cpus=1, include_dashboard=False, logging_level="ERROR")
    try:
        run = goodput_gym.sweep(many)
    finally:
        ray.shutdown()
    assert run.polars("runs").height == 24 and before == {cell: cell.stat().st_mtime_ns for cell in stored(many)}


def test_an_error_of_the_program_ends_the_sweep_with_its_message(tmp_path):
    plan(tmp_path / "sweep")
    refusing = tmp_path / "refusing"
    refusing.write_text("#!/bin/sh\necho 'error: no such policy' >&2\nexit 2\n")
    refusing.chmod(0o755)
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR")
    try:
        with pytest.raises(RuntimeError, match="ended with 2:\nerror: no such policy"):
            goodput_gym.sweep(tmp_path / "sweep", program=str(refusing))
    finally:
        ray.shutdown()


def test_without_a_program_the_remedy_is_said(tmp_path, monkeypatch):
    from goodput_gym import _program

    monkeypatch.delenv("GOODPUT")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(FileNotFoundError, match="cargo xtask wheel full"):
        _program.found(None)
