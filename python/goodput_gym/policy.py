"""Policies in Python by the name `python:MODULE:CLASS`, wherever goodput takes the name of a policy.

The class is made without arguments, or, where it has an argument without a default, with the greeting: a dict of the
shapes `obs_dim`, `actions`, `slots`, `slot_features`, `globals` and `verbs`, of `features` and `action_names`, of
`schema`, and of the `seed` of the run.
Then `act(observation, mask)` is called for every action of a round:

    class Cautious:
        def act(self, observation, mask):                 # float32 (obs_dim,), bool (actions,)
            return len(mask) - 1 if mask[-1] else int(mask.argmax())

`act` may give a reason with the action, which `goodput explain` shows: `return action, "the oldest job"`.

An exception ends the process and costs its turn: the round ends. What the class prints goes to standard error.
"""

import importlib
import inspect
import json
import os
import struct
import sys
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

PROTOCOL = 1
LONGEST_REASON = 4096
"""Longest reason that goodput takes, bytes of UTF-8; the rest is cut off."""


class Policy(Protocol):
    """A policy that plays rounds."""

    def act(self, observation: NDArray[np.float32], mask: NDArray[np.bool_]) -> int | tuple[int, str]:
        """The number of an action that the mask allows, alone or with a reason; the last one ends the round."""
        ...


def load(target: str, greeting: dict[str, Any]) -> Policy:
    """Makes the class that `MODULE:CLASS` names. Modules are found in the working directory as well."""
    module, name = target.split(":", 1)
    sys.path.insert(0, os.getcwd())
    made = getattr(importlib.import_module(module), name)
    policy: Policy = made(greeting) if _wants_greeting(made) else made()
    return policy


def _wants_greeting(made: Any) -> bool:
    """Whether a class takes an argument that has no default."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(made).parameters.values()
    return any(each.kind in positional and each.default is each.empty for each in parameters)


def serve(target: str, requests: BinaryIO, answers: BinaryIO) -> None:
    """Greets, and answers requests until they end."""
    greeting = json.loads(requests.readline())
    if greeting["protocol"] != PROTOCOL:
        theirs = greeting["protocol"]
        raise SystemExit(f"goodput speaks protocol {theirs}, this package {PROTOCOL}: take both from one release")
    policy = load(target, greeting)
    answers.write(json.dumps({"protocol": PROTOCOL, "reasons": True}).encode() + b"\n")
    answers.flush()
    floats, actions = greeting["obs_dim"], greeting["actions"]
    while requests.read(1) == b"d":
        observation = np.frombuffer(requests.read(4 * floats), "<f4")
        mask = np.frombuffer(requests.read(actions), np.bool_)
        answer = policy.act(observation, mask)
        action, reason = answer if isinstance(answer, tuple) else (answer, "")
        text = reason.encode()[:LONGEST_REASON]
        answers.write(struct.pack("<II", int(action), len(text)) + text)
        answers.flush()


if __name__ == "__main__":
    if len(sys.argv) != 2 or ":" not in sys.argv[1]:
        raise SystemExit("python -m goodput_gym.policy MODULE:CLASS")
    # What the class prints must not get among the answers, and what it reads must not come from the requests.
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    serve(sys.argv[1], requests, answers)
