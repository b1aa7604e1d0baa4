"""Stable-Baselines3's MaskablePPO on goodput's own environment: decisions learned from per second of CPU, on one thread.

    pip install stable-baselines3 sb3-contrib, and the wheel of `cargo xtask wheel`
    python train/benches/maskable_ppo.py [DECISIONS]

The cluster, workload, batch, epochs and learning rate are those of the quickstart. Actor and critic have a flat net of two
layers of 64 with ReLU each, as in the benchmark `training_loop`, which is the other side.
"""

import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import sb3_contrib
import stable_baselines3
import torch
from goodput_gym.sb3 import ClusterVecEnv
from sb3_contrib import MaskablePPO

ENVS, STEPS = 32, 256


def main():
    decisions = int(sys.argv[1]) if len(sys.argv) > 1 else 49_152
    torch.set_num_threads(1)
    envs = ClusterVecEnv("quickstart", ENVS, seed=1, threads=1)
    net = {"net_arch": [64, 64], "activation_fn": torch.nn.ReLU}
    model = MaskablePPO("MlpPolicy", envs, n_steps=STEPS, batch_size=512, n_epochs=3, learning_rate=3e-4, ent_coef=0.003,
                        policy_kwargs=net, seed=1, device="cpu")
    model.learn(ENVS * STEPS)  # once, so that nothing is allocated for the first time
    before = time.process_time()
    model.learn(decisions, reset_num_timesteps=False)
    secs = time.process_time() - before
    learned = model.num_timesteps - ENVS * STEPS
    print(f"MaskablePPO: {learned} decisions, {learned / secs:.0f} a second of CPU; torch {torch.__version__}, "
          f"stable-baselines3 {stable_baselines3.__version__}, sb3-contrib {sb3_contrib.__version__}, numpy {np.__version__}")


if __name__ == "__main__":
    main()
