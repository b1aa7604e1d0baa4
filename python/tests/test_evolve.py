"""An evolution on Ray: one process, and several machines of which one dies, train equal policies."""

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed")

import ray  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

import goodput_gym  # noqa: E402

GOODPUT = os.environ.get("GOODPUT", "")
KNOWS = GOODPUT and subprocess.run([GOODPUT, "train", "work", "--help"], capture_output=True).returncode == 0
pytestmark = pytest.mark.skipif(not KNOWS, reason="GOODPUT is not the path of a program that knows `train work`")
ELASTIC = Path(__file__).resolve().parents[2] / "configs/experiment/elastic.toml"
SMALL = """[agent.evolution]
population = 6
generations = 3
episodes = 4
validate_every = 3
[train]
validation_seeds = 1
gate_percent = 1000.0
[evaluate]
policies = ["pollux-fast"]
seeds = 1
"""
RESULTS = ("progress.csv", "checkpoints/evolution.json", "summary.json", "jobs.parquet", "runs.parquet")


@pytest.fixture
def small(tmp_path):
    """An evolution of seconds."""
    text = ELASTIC.read_text(encoding="utf-8").replace("work_spread = 1.0", "work_spread = 1.0\njobs = 60\nhours = 3")
    file = tmp_path / "small.toml"
    file.write_text(text[: text.index("[agent.evolution]")] + SMALL, encoding="utf-8")
    return file


def goodput(*arguments):
    done = subprocess.run([GOODPUT, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def policy(run):
    """Bytes of the exported policy, which does not depend on the names of folders."""
    goodput("export", run, "--to", run.with_name("exported"))
    return (run.with_name("exported") / "policy.bundle").read_bytes()


def claims(run):
    return list((run / "spool").glob("*/*.claim.*"))


def test_a_machine_dies_and_the_policy_is_that_of_one_process(small, tmp_path):
    one, many = tmp_path / "one", tmp_path / "many"
    goodput("train", small, "--run-dir", one)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(3)]
    ray.init(address=cluster.address, logging_level="ERROR")
    errors = []

    def train():
        try:
            goodput_gym.evolve(small, many, workers=3)
        except Exception as error:
            errors.append(error)

    try:
        thread = threading.Thread(target=train)
        thread.start()
        while thread.is_alive() and not claims(many):
            time.sleep(0.01)
        assert thread.is_alive(), errors
        cluster.remove_node(nodes[1], allow_graceful=False)
        thread.join(timeout=240)
        assert not thread.is_alive() and not errors, errors
    finally:
        ray.shutdown()
        cluster.shutdown()
    for name in RESULTS:
        assert (one / name).read_bytes() == (many / name).read_bytes(), name
    assert policy(one) == policy(many)


def test_an_error_of_the_program_ends_the_training_with_its_message(tmp_path):
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR")
    try:
        with pytest.raises(RuntimeError, match=r"\[agent.ppo\] learns in one process"):
            goodput_gym.evolve(ELASTIC.with_name("set-encoder.toml"), tmp_path / "run", workers=1)
    finally:
        ray.shutdown()
