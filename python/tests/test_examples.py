"""The examples, run as programs."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from goodput_gym import Bundle  # noqa: E402

FOLDER = Path(__file__).resolve().parents[1] / "examples"


def trained(folder, *options):
    """Decisions after each update, and mean completion times in seconds over ten workloads that are held out."""
    sizes = "--num-envs 16 --num-steps 128 --jobs 12 --width 32 --episodes 10".split()
    command = [sys.executable, str(FOLDER / "ppo.py"), *sizes, *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    updates, held_out = done.stdout.split("held out, ")
    rows = [line.split() for line in held_out.splitlines()[1:] if line.endswith(" s")]
    return [int(line.split()[0]) for line in updates.splitlines()], {name: float(secs) for name, secs, _ in rows}


def test_ppo_in_one_file_learns_and_writes_a_bundle(tmp_path):
    """It schedules workloads that it has not seen better than chance, and the net that has learned nothing does not."""
    decisions, secs = trained(tmp_path, "--decisions", "65536", "--bundle", "policy.bundle")
    assert decisions == list(range(2048, 65537, 2048))
    assert set(secs) == {"learned", "chance", "fifo", "tiresias"}
    assert secs["learned"] < secs["chance"]
    assert Bundle(tmp_path / "policy.bundle").kind == "mlp"
    _, untrained = trained(tmp_path, "--decisions", "2048", "--learning-rate", "0")
    assert untrained["learned"] > untrained["chance"] == secs["chance"]
