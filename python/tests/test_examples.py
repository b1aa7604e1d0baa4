"""The examples, run as programs."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from goodput_gym import Bundle  # noqa: E402

FOLDER = Path(__file__).resolve().parents[1] / "examples"


def test_ppo_in_one_file_learns_and_writes_a_bundle(tmp_path):
    sizes = "--decisions 8192 --num-envs 16 --num-steps 128 --jobs 12 --width 32 --episodes 2".split()
    command = [sys.executable, str(FOLDER / "ppo.py"), *sizes, "--bundle", "policy.bundle"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [int(line.split()[0]) for line in lines[:4]] == [2048, 4096, 6144, 8192]
    assert {line.split()[0] for line in lines[5:9]} == {"learned", "chance", "fifo", "tiresias"}
    assert Bundle(tmp_path / "policy.bundle").kind == "mlp"
