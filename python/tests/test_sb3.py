"""Stable-Baselines3: its checker, and MaskablePPO on one environment and on a vector."""

import numpy as np
import pytest
from conftest import SETS

from goodput_gym import ClusterEnv

pytest.importorskip("sb3_contrib", reason="Stable-Baselines3 or torch is not installed")

from sb3_contrib import MaskablePPO  # noqa: E402
from stable_baselines3.common.env_checker import check_env  # noqa: E402
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize  # noqa: E402

from goodput_gym.sb3 import ClusterVecEnv  # noqa: E402


@pytest.mark.parametrize("observation", ["flat", "masked"])
def test_stable_baselines3_checks_it(observation):
    check_env(ClusterEnv("quickstart", sets=SETS, on_forbidden="wait", observation=observation))


def test_maskable_ppo_takes_one_environment():
    model = MaskablePPO("MlpPolicy", ClusterEnv("quickstart", sets=SETS, seed=1), n_steps=64, seed=0)
    # An action that the mask forbids would raise.
    model.learn(256)


def test_maskable_ppo_learns_from_ten_thousand_decisions():
    envs = ClusterVecEnv("quickstart", 16, sets=SETS, seed=1, half_life_secs=7200.0, present_value=True)
    model = MaskablePPO("MlpPolicy", envs, gamma=1.0, n_steps=128, batch_size=512, seed=0)
    before = [parameter.detach().clone() for parameter in model.policy.parameters()]
    model.learn(10_000)
    assert model.num_timesteps >= 10_000
    changed = [not np.array_equal(a.numpy(), b.detach().numpy()) for a, b in zip(before, model.policy.parameters())]
    assert any(changed)
    assert len(model.ep_info_buffer) > 10 and all(np.isfinite(episode["r"]) for episode in model.ep_info_buffer)


def test_what_gives_wrong_observations_is_refused():
    for option in ({"copy": False}, {"autoreset_mode": "NEXT_STEP"}):
        with pytest.raises(TypeError, match="is fixed"):
            ClusterVecEnv("quickstart", 2, sets=SETS, **option)


def test_an_exported_policy_decides_as_its_net(tmp_path):
    import torch

    from goodput_gym import Bundle, export

    envs = ClusterVecEnv("quickstart", 4, sets=SETS, seed=1)
    relu = {"activation_fn": torch.nn.ReLU}
    model = MaskablePPO("MlpPolicy", envs, n_steps=64, batch_size=128, policy_kwargs=relu, seed=0)
    model.learn(512)
    export(model, envs, tmp_path / "policy.bundle", steps=model.num_timesteps)
    bundle, env = Bundle(str(tmp_path / "policy.bundle")), ClusterEnv("quickstart", sets=SETS)
    observation, _ = env.reset(seed=1)
    for _ in range(1000):
        mask = env.action_masks()
        action, _ = model.predict(observation, action_masks=mask, deterministic=True)
        assert bundle.act(observation, mask) == int(action)
        observation, _, terminated, truncated, _ = env.step(int(action))
        if terminated or truncated:
            observation, _ = env.reset()
    for wrapped in (VecNormalize(envs), VecMonitor(VecNormalize(envs))):
        with pytest.raises(ValueError, match="VecNormalize"):
            export(model, wrapped, tmp_path / "other.bundle")
    export(model, VecNormalize(envs, norm_obs=False), tmp_path / "other.bundle")
    tanh = MaskablePPO("MlpPolicy", envs, n_steps=64, batch_size=128)
    with pytest.raises(ValueError, match="Tanh"):
        export(tanh, envs, tmp_path / "other.bundle")


@pytest.mark.parametrize("activation", ["ReLU", "Tanh", None])
def test_a_module_of_torch_decides_alike_or_is_refused(tmp_path, activation):
    import torch
    from torch import nn

    from goodput_gym import Bundle, export

    torch.manual_seed(1)
    env = ClusterEnv("quickstart", sets=SETS)
    between = [] if activation is None else [getattr(nn, activation)()]
    net = nn.ModuleDict({
        "actor": nn.Sequential(nn.Linear(len(env.features), 16), *between, nn.Linear(16, len(env.action_names))),
        "critic": nn.Sequential(nn.Linear(len(env.features), 16), *between, nn.Linear(16, 1)),
    })
    path = tmp_path / "policy.bundle"
    if activation != "ReLU":
        with pytest.raises(ValueError, match="ReLU between"):
            export(net, env, path)
        return
    export(net, env, path)
    bundle = Bundle(path)
    observation, info = env.reset(seed=1)
    for _ in range(500):
        scores = net["actor"](torch.from_numpy(observation)).detach().numpy()
        action = int(np.where(info["action_mask"], scores, -np.inf).argmax())
        assert bundle.act(observation, info["action_mask"]) == bundle.act(observation, env.action_masks()) == action
        observation, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            observation, info = env.reset()
