"""RLlib's PPO with masked actions on a cluster of Ray in this machine: seconds, and what was learned.

    pip install -r python/tests/learners.txt && pip install target/wheels/goodput_gym-*.whl
    python python/benches/rllib.py [ITERATIONS]

A head that runs nothing and two raylets of one processor each, a runner of 16 environments on each, and the learner in
the process that asks. Episodes have 40 jobs, and observations 8 slots, as in `python/examples/ppo.py`. The exported
policy then plays 20 held-out episodes.
"""

import os
import sys
import tempfile
import time

os.environ["OMP_NUM_THREADS"] = "1"

import gymnasium
import numpy as np
import ray
import torch
from ray.cluster_utils import Cluster
from ray.rllib.algorithms.ppo import PPOConfig

import goodput_gym
from goodput_gym import rllib

SETS = {"environment.slots": 8, "workload.synthetic.diurnal.jobs": 40}
BATCH, EPISODES = 4096, 20


def mean_jct(chooser):
    """Mean job completion time in seconds over held-out episodes."""
    env, means = goodput_gym.ClusterEnv("quickstart", sets=SETS, split="held-out"), []
    choose = chooser(env)
    for _ in range(EPISODES):
        (observation, info), over = env.reset(), False
        while not over:
            observation, _, terminated, truncated, info = env.step(choose(observation, info["action_mask"]))
            over = terminated or truncated
        means.append(info["jct_mean_secs"])
    return np.mean(means)


def published(name):
    def chooser(env):
        expert = goodput_gym.policies[name](env)
        return lambda observation, mask: int(expert.actions()[0])

    return chooser


def chance(env):
    random = np.random.default_rng(1)
    return lambda observation, mask: int(random.choice(np.flatnonzero(mask)))


def main():
    iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    print(f"ray {ray.__version__}, torch {torch.__version__}, gymnasium {gymnasium.__version__}")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, logging_level="ERROR")
    env_config = {"config": "quickstart", "sets": SETS, "round_actions": 8}
    config = (
        PPOConfig()
        .environment(rllib.RunnerEnv, env_config=env_config)
        .env_runners(num_env_runners=2, num_envs_per_env_runner=16, gym_env_vectorize_mode="vector_entry_point")
        .learners(num_learners=0)
        .training(
            train_batch_size_per_learner=BATCH,
            minibatch_size=512,
            num_epochs=4,
            lr=5e-4,
            gamma=0.99,
            lambda_=0.95,
            entropy_coeff=0.01,
            # Returns are far below -10, beyond which RLlib would not correct the critic.
            vf_clip_param=float("inf"),
        )
        .rl_module(rl_module_spec=rllib.masked_net(hidden=(64, 64)))
        .debugging(seed=1, log_level="ERROR")
    )
    algorithm = config.build_algo()
    algorithm.train()
    began = time.perf_counter()
    for _ in range(iterations):
        result = algorithm.train()
    secs = time.perf_counter() - began
    runners = result["env_runners"]
    print(f"{iterations * BATCH / secs:.0f} decisions a second, {runners['num_env_steps_sampled_lifetime']:.0f} in all")
    env = goodput_gym.ClusterEnv("quickstart", sets=SETS)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "policy.bundle")
        goodput_gym.export(rllib.state(algorithm), env, path, seed=1)
        bundle = goodput_gym.Bundle(path)
    algorithm.stop()
    print("| policy | mean completion time, seconds |\n|---|---|")
    rows = [("RLlib", lambda env: bundle.act), ("chance", chance)]
    for name, chooser in rows + [(name, published(name)) for name in ("fifo", "tiresias")]:
        print(f"| {name} | {mean_jct(chooser):.0f} |", flush=True)


if __name__ == "__main__":
    main()
