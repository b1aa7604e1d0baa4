"""goodput's scheduling environments for Gymnasium: one file, needs gymnasium 1.1 or newer, numpy, and the program `goodput`.

    import goodput_pipe

    envs = goodput_pipe.ClusterVectorEnv("configs/experiment/quickstart.toml", num_envs=8, seed=1)
    observations, infos = envs.reset()
    while training:
        actions = choose(observations, infos["action_mask"])       # an action that the mask forbids ends the process
        observations, rewards, terminated, truncated, infos = envs.step(actions)

An observation is one flat vector, `slots` x `slot_features` job by job, then `globals` (attributes of these names say how many). Action `a` below
`slots * verbs` does verb `a % verbs` to the job in slot `a // verbs`; the last action ends the round. Decisions of one round take no time:
discount by `infos["elapsed_secs"]`, not per decision. Episodes begin anew in the step in which they end (`AutoresetMode.SAME_STEP`); the last
observation is in `infos["final_obs"]`, mean job completion times of episodes that ended in `infos["jct_mean_secs"]` (seconds, NaN elsewhere).
"""

import json
import os
import subprocess

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

PROTOCOL = 1


class ClusterVectorEnv(VectorEnv):
    """Environments of one experiment file, served by a process of their own.

    `split` is "training", "validation" or "held-out"; `sets` changes values of the file (`["environment.slots=32"]`); `program` is the path of
    goodput, by default $GOODPUT or the one on the PATH.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}

    def __init__(self, experiment, num_envs=1, seed=1, split="training", sets=(), program=None):
        program = program or os.environ.get("GOODPUT", "goodput")
        command = [program, "env", "serve", str(experiment), "--envs", str(num_envs), "--seed", str(seed), "--split", split]
        for change in sets:
            command += ["--set", change]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        greeting = self._process.stdout.readline()
        if not greeting:
            raise RuntimeError(f"{command[0]} env serve ended with code {self._process.wait()}; what it said is above")
        shapes = json.loads(greeting)
        if shapes["protocol"] != PROTOCOL:
            raise RuntimeError(f"{program} speaks protocol {shapes['protocol']}, this file {PROTOCOL}: take both from one release")
        self.num_envs = num_envs
        self.slots, self.slot_features = shapes["slots"], shapes["slot_features"]
        self.globals, self.verbs = shapes["globals"], shapes["verbs"]
        self._dim, self._actions = shapes["obs_dim"], shapes["actions"]
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (self._dim,), np.float32)
        self.single_action_space = gymnasium.spaces.Discrete(self._actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed=None, options=None):
        """Begins new episodes. Seeds belong to the process: give `seed` to the constructor."""
        if seed is not None:
            raise ValueError("workloads follow from the seed given to the constructor; make a new environment for another one")
        self._send(b"r")
        observations = self._read((self.num_envs, self._dim), "<f4")
        return observations, {"action_mask": self._mask()}

    def step(self, actions):
        self._send(b"s" + np.ascontiguousarray(actions, dtype="<u4").tobytes())
        n = self.num_envs
        observations = self._read((n, self._dim), "<f4")
        infos = {"action_mask": self._mask()}
        rewards = self._read((n,), "<f8")
        infos["elapsed_secs"] = self._read((n,), "<f8")
        ends = self._read((n,), "u1")
        infos["jct_mean_secs"] = self._read((n,), "<f8")
        ended = np.flatnonzero(ends)
        if len(ended):
            last = self._read((len(ended), self._dim), "<f4")
            infos["final_obs"] = np.full(n, None, dtype=object)
            for env, observation in zip(ended, last):
                infos["final_obs"][env] = observation
            infos["_final_obs"] = ends > 0
        return observations, rewards, ends == 1, ends == 2, infos

    def close_extras(self, **kwargs):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def _mask(self):
        return self._read((self.num_envs, self._actions), "u1").astype(bool)

    def _send(self, request):
        try:
            self._process.stdin.write(request)
            self._process.stdin.flush()
        except BrokenPipeError:
            self._gone()

    def _read(self, shape, dtype):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        data = self._process.stdout.read(size)
        if len(data) < size:
            self._gone()
        return np.frombuffer(data, dtype).reshape(shape).copy()

    def _gone(self):
        raise RuntimeError(f"goodput env serve ended with code {self._process.wait()}; what it said is on stderr")
