"""A class of Python behind the protocol of external policies."""

import io
import json
import struct
import subprocess
import sys

import numpy as np

from goodput_gym import policy

GREETING = {"protocol": 1, "obs_dim": 4, "actions": 3, "seed": 7}


def requests(masks):
    observation = np.arange(4, dtype="<f4").tobytes()
    return json.dumps(GREETING).encode() + b"\n" + b"".join(b"d" + observation + bytes(mask) for mask in masks)


def actions(answer):
    line, rest = answer.split(b"\n", 1)
    assert json.loads(line) == {"protocol": 1}
    return list(struct.unpack(f"<{len(rest) // 4}I", rest))


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
    answers = io.BytesIO()
    policy.serve("mine:First", io.BytesIO(requests(masks)), answers)
    assert actions(answers.getvalue()) == [1, 2, 0]
    # As a program; what the class prints goes to standard error.
    command = [sys.executable, "-m", "goodput_gym.policy", "mine:Seeded"]
    done = subprocess.run(command, input=requests(masks), capture_output=True, check=True)
    assert actions(done.stdout) == [1, 1, 1]
    assert done.stderr.count(b"this is no answer") == 3
