"""A class of Python behind the protocol of external policies."""

import io
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from goodput_gym import policy, read_run

ROOT = Path(__file__).resolve().parents[2]
GREETING = {"protocol": 1, "obs_dim": 4, "actions": 3, "seed": 7}


def requests(masks):
    observation = np.arange(4, dtype="<f4").tobytes()
    return json.dumps(GREETING).encode() + b"\n" + b"".join(b"d" + observation + bytes(mask) for mask in masks)


def actions(answer):
    line, rest = answer.split(b"\n", 1)
    assert json.loads(line) == {"protocol": 1, "reasons": True}
    return [action for action, _ in answers(rest)]


def answers(rest):
    found = []
    while rest:
        action, length = struct.unpack("<II", rest[:8])
        found.append((action, rest[8 : 8 + length].decode()))
        rest = rest[8 + length :]
    return found


def test_a_class_answers_every_request(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "class First:\n"
        "    def act(self, observation, mask):\n"
        "        assert observation.tolist() == [0.0, 1.0, 2.0, 3.0] and mask.dtype == bool\n"
        "        return int(mask.argmax())\n"
        "class Seeded:\n"
        "    def __init__(self, greeting):\n"
        "        self.action = greeting['seed'] % greeting['actions']\n"
        "    def act(self, observation, mask):\n"
        "        print('this is no answer')\n"
        "        return self.action\n"
    )
    monkeypatch.chdir(tmp_path)
    masks = [[0, 1, 1], [0, 0, 1], [1, 0, 1]]
    answered = io.BytesIO()
    policy.serve("mine:First", io.BytesIO(requests(masks)), answered)
    assert actions(answered.getvalue()) == [1, 2, 0]
    # A reason follows the action.
    (tmp_path / "wordy.py").write_text(
        "class Wordy:\n"
        "    def act(self, observation, mask):\n"
        "        return 2, 'é' * 3000\n"
    )
    answered = io.BytesIO()
    policy.serve("wordy:Wordy", io.BytesIO(requests(masks[:1])), answered)
    [(action, reason)] = answers(answered.getvalue().split(b"\n", 1)[1])
    assert action == 2 and reason == "é" * 2048
    # An argument with a default is the class's own.
    (tmp_path / "own.py").write_text(
        "class Own:\n"
        "    def __init__(self, depth=1, *rest, **more):\n"
        "        assert depth == 1 and not rest and not more\n"
        "    def act(self, observation, mask):\n"
        "        import sys\n"
        "        assert sys.stdin.read() == '' and 'gymnasium' not in sys.modules\n"
        "        return len(mask) - 1\n"
    )
    command = [sys.executable, "-m", "goodput_gym.policy", "own:Own"]
    done = subprocess.run(command, input=requests(masks), capture_output=True, check=True)
    assert actions(done.stdout) == [2, 2, 2]
    # As a program; what the class prints goes to standard error.
    command = [sys.executable, "-m", "goodput_gym.policy", "mine:Seeded"]
    done = subprocess.run(command, input=requests(masks), capture_output=True, check=True)
    assert actions(done.stdout) == [1, 1, 1]
    assert done.stderr.count(b"this is no answer") == 3


@pytest.mark.skipif("GOODPUT" not in os.environ, reason="GOODPUT, the path of the program, is not set")
def test_goodput_compares_a_class(tmp_path):
    (tmp_path / "mine.py").write_text(
        "class First:\n"
        "    def act(self, observation, mask):\n"
        "        return int(mask.argmax())\n"
        "class Careless(First):\n"
        "    asked = 0\n"
        "    def act(self, observation, mask):\n"
        "        self.asked += 1\n"
        "        return len(mask) if self.asked % 50 == 0 else super().act(observation, mask)\n"
    )
    command = [os.environ["GOODPUT"], "eval", str(ROOT / "configs/experiment/quickstart.toml"), "--run-dir", "run"]
    command += ["--policies", "fifo,python:mine:First,python:mine:Careless", "--seeds", "2"]
    command += ["--set", "workload.synthetic.diurnal.jobs=12"]
    environment = os.environ | {"GOODPUT_PYTHON": sys.executable}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "python:mine:First lost" not in done.stderr
    assert "python:mine:Careless lost" in done.stderr and "is forbidden by the mask" in done.stderr
    runs = pytest.importorskip("polars") and read_run(tmp_path / "run").polars("runs")
    assert {"python:mine:First", "fifo"} <= set(runs["policy"])
