"""RLlib on Ray: PPO with masked actions on a cluster of two nodes, seeds of its runners, and the way back."""

import numpy as np
import pytest
from conftest import SETS

pytest.importorskip("ray.rllib", reason="RLlib is not installed")
pytest.importorskip("torch", reason="torch is not installed")

import ray  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402
from ray.rllib.algorithms.ppo import PPOConfig  # noqa: E402

from goodput_gym import Bundle, ClusterEnv, export, rllib  # noqa: E402

RUNNERS, ENVS = 2, 8


@pytest.fixture(scope="module")
def nodes():
    """A head that runs nothing, and two raylets of one processor each."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def ppo(**env_config):
    return (
        PPOConfig()
        .environment(rllib.RunnerEnv, env_config={"config": "quickstart", "sets": SETS, **env_config})
        .env_runners(
            num_env_runners=RUNNERS, num_envs_per_env_runner=ENVS, gym_env_vectorize_mode="vector_entry_point"
        )
        .learners(num_learners=0)
        .training(train_batch_size_per_learner=1024, minibatch_size=256, num_epochs=3, lr=1e-3, gamma=1.0)
        .rl_module(rl_module_spec=rllib.masked_net(hidden=(32, 32)))
        .debugging(seed=1, log_level="ERROR")
    )


def placed(algorithm):
    """Where each runner of RLlib is, and the seeds of the streams that its environments play."""

    # A function of this module would travel by its name, which the runners do not know.
    def here(runner):
        return ray.get_runtime_context().get_node_id(), runner.env.unwrapped.stream_seeds.tolist()

    return algorithm.env_runner_group.foreach_env_runner(here, local_env_runner=False)


def test_ppo_trains_on_two_nodes_and_its_policy_comes_back(nodes, tmp_path):
    algorithm = ppo(half_life_secs=7200.0, present_value=True).build_algo()
    before = rllib.state(algorithm)
    for _ in range(3):
        result = algorithm.train()
    assert result["env_runners"]["num_env_steps_sampled_lifetime"] >= 3 * 1024
    assert np.isfinite(result["env_runners"]["episode_return_mean"])
    after = rllib.state(algorithm)
    assert all(not np.array_equal(before[name], after[name]) for name in after if name.endswith("weight"))

    found = placed(algorithm)
    assert len({node for node, _ in found}) == RUNNERS, "the runners are on one node"
    seeds = sorted(seed for _, seeds in found for seed in seeds)
    # A stream has as many seeds as it has episodes.
    assert len(seeds) == RUNNERS * ENVS and min(np.diff(np.array(seeds, dtype=object))) > 1_000_000

    net = algorithm.get_module()
    env = ClusterEnv("quickstart", sets=SETS, observation="masked")
    export(after, env, tmp_path / "policy.bundle", seed=1, steps=3 * 1024)
    bundle = Bundle(tmp_path / "policy.bundle")
    import torch

    observation, info = env.reset(seed=1)
    for _ in range(1000):
        batch = {"obs": {name: torch.from_numpy(value[None].copy()) for name, value in observation.items()}}
        with torch.no_grad():
            action = int(net.forward_inference(batch)["action_dist_inputs"].argmax())
        assert bundle.act(observation["observations"], info["action_mask"]) == action
        observation, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            observation, info = env.reset()
    algorithm.stop()


def test_runners_without_a_seed_play_their_own_streams(nodes):
    algorithm = ppo().debugging(seed=None).build_algo()
    algorithm.train()
    found = placed(algorithm)
    assert len({seed for _, seeds in found for seed in seeds}) == RUNNERS * ENVS
    algorithm.stop()


def test_what_would_share_seeds_is_refused():
    with pytest.raises(ValueError, match="vector_entry_point"):
        rllib.RunnerEnv({"config": "quickstart"})
    for name in ("seed", "first", "observation", "autoreset_mode", "copy"):
        with pytest.raises(ValueError, match=f"{name!r} is set by goodput_gym.rllib"):
            rllib.RunnerEnv({"num_envs": 2, name: 1})
