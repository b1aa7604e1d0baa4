"""Stable-Baselines3's MaskablePPO on goodput's own environment: decisions learnt from per second of CPU, on one thread.

    pip install stable-baselines3 sb3-contrib
    python train/benches/maskable_ppo.py [DECISIONS]         # needs target/release/goodput; then: cargo xtask bench training_loop

Quickstart's cluster, workload, batch, epochs and learning rate, a flat net of two layers of 64 for actor and critic each, ReLU: what the benchmark
`training_loop` trains beside it. Seconds of CPU are those of Python and of the process that serves the environments.
"""

import os
import pathlib
import resource
import sys

os.environ["OMP_NUM_THREADS"] = "1"
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "env/clients/python"))

import numpy as np
import torch
from goodput_pipe import ClusterVectorEnv
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import VecEnv

torch.set_num_threads(1)


class Adapter(VecEnv):
    """The form in which Stable-Baselines3 takes environments."""

    def __init__(self, envs):
        self.envs = envs
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self.completion_secs = []

    def reset(self):
        observations, infos = self.envs.reset()
        self.masks = infos["action_mask"]
        return observations

    def step_async(self, actions):
        self.actions = actions

    def step_wait(self):
        observations, rewards, terminated, truncated, infos = self.envs.step(self.actions)
        self.masks = infos["action_mask"]
        done = terminated | truncated
        notes = [{} for _ in done]
        for env in np.flatnonzero(done):
            notes[env] = {"terminal_observation": infos["final_obs"][env], "TimeLimit.truncated": bool(truncated[env])}
            self.completion_secs.append(infos["jct_mean_secs"][env])
        return observations, rewards.astype(np.float32), done, notes

    def env_method(self, name, *args, indices=None, **kwargs):
        assert name == "action_masks"
        return list(self.masks)

    def get_attr(self, name, indices=None):
        if name == "action_masks":
            return [True] * self.num_envs
        if name == "render_mode":
            return [None] * self.num_envs
        raise AttributeError(name)

    def set_attr(self, name, value, indices=None):
        raise AttributeError(name)

    def env_is_wrapped(self, wrapper, indices=None):
        return [False] * self.num_envs

    def close(self):
        self.envs.close()


def cpu_secs(child):
    own = resource.getrusage(resource.RUSAGE_SELF)
    fields = pathlib.Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()
    served = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own.ru_utime + own.ru_stime + served, served


def main():
    decisions = int(sys.argv[1]) if len(sys.argv) > 1 else 131_072
    config = ROOT / "configs/experiment/quickstart.toml"
    envs = ClusterVectorEnv(config, num_envs=32, seed=1, program=os.environ.get("GOODPUT", ROOT / "target/release/goodput"))
    adapter = Adapter(envs)
    net = {"net_arch": [64, 64], "activation_fn": torch.nn.ReLU}
    model = MaskablePPO("MlpPolicy", adapter, n_steps=256, batch_size=512, n_epochs=3, learning_rate=3e-4, ent_coef=0.003,
                        policy_kwargs=net, seed=1, device="cpu")
    model.learn(32 * 256)  # once, so that nothing is allocated for the first time
    before, served_before = cpu_secs(envs._process.pid)
    model.learn(decisions, reset_num_timesteps=False)
    after, served = cpu_secs(envs._process.pid)
    learnt = model.num_timesteps - 32 * 256
    print(f"{learnt} decisions, {after - before:.1f} s of CPU ({served - served_before:.1f} s of them the environment's): "
          f"{learnt / (after - before):.0f} decisions a second of CPU")
    if adapter.completion_secs:
        print(f"{len(adapter.completion_secs)} episodes ended; mean completion time of the last 20: {np.mean(adapter.completion_secs[-20:]):.0f} s")
    adapter.close()


if __name__ == "__main__":
    main()
