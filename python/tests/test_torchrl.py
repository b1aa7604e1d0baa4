"""TorchRL: its checker, resets of single environments, and PPO with masked actions."""

import numpy as np
import pytest
from conftest import SETS, allowed

pytest.importorskip("torchrl", reason="TorchRL is not installed")

import torch  # noqa: E402
from tensordict.nn import TensorDictModule  # noqa: E402
from torch import nn  # noqa: E402
from torchrl.envs import TransformedEnv  # noqa: E402
from torchrl.envs.transforms import ActionMask  # noqa: E402
from torchrl.envs.utils import check_env_specs  # noqa: E402
from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator  # noqa: E402
from torchrl.objectives import ClipPPOLoss  # noqa: E402
from torchrl.objectives.value import GAE  # noqa: E402

from goodput_gym import Bundle, ClusterEnv, ClusterVectorEnv, export  # noqa: E402
from goodput_gym.torchrl import ClusterTorchEnv  # noqa: E402


def env(count=3, **options):
    return ClusterTorchEnv("quickstart", count, sets=SETS, **options)


def test_torchrl_checks_it():
    check_env_specs(TransformedEnv(env(on_forbidden="wait", seed=1), ActionMask()))


def test_it_plays_what_the_vector_plays():
    ours, vector = env(3), ClusterVectorEnv("quickstart", 3, sets=SETS)
    ours.set_seed(9)
    state, (observations, infos) = ours.reset(), vector.reset(seed=9)
    ended = 0
    for step in range(700):
        assert np.array_equal(state["observation"].numpy(), observations)
        assert np.array_equal(state["action_mask"].numpy(), infos["action_mask"] == 1)
        actions = allowed(infos["action_mask"], step)
        state["action"] = torch.from_numpy(actions)
        done, state = ours.step_and_maybe_reset(state)
        observations, rewards, terminated, truncated, infos = vector.step(actions)
        assert np.array_equal(done["next", "reward"][:, 0].numpy(), rewards.astype(np.float32))
        assert np.array_equal(done["next", "done"][:, 0].numpy(), terminated | truncated)
        ended += int((terminated | truncated).sum())
    assert ended > 3


def test_ppo_trains_and_its_policy_comes_back(tmp_path):
    torch.manual_seed(0)
    envs = env(8, seed=1, half_life_secs=7200.0, present_value=True)
    dim, actions = len(envs.envs.features), len(envs.envs.action_names)

    def net(outputs):
        return nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, outputs))

    nets = nn.ModuleDict({"actor": net(actions), "critic": net(1)})
    actor = ProbabilisticActor(
        TensorDictModule(nets["actor"], in_keys=["observation"], out_keys=["logits"]),
        in_keys={"logits": "logits", "mask": "action_mask"},
        distribution_class=MaskedCategorical,
        spec=envs.action_spec,
        return_log_prob=True,
    )
    critic = ValueOperator(nets["critic"], in_keys=["observation"])
    loss, advantage = ClipPPOLoss(actor, critic), GAE(gamma=1.0, lmbda=0.95, value_network=critic)
    optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)
    before = [parameter.detach().clone() for parameter in nets.parameters()]
    ends = 0
    for _ in range(4):
        with torch.no_grad():
            # An action that the mask forbids would raise.
            rollout = envs.rollout(128, actor, break_when_any_done=False)
            advantage(rollout)
        ends += int(rollout["next", "done"].sum())
        for _ in range(2):
            losses = loss(rollout.reshape(-1))
            optimizer.zero_grad()
            sum(losses[name] for name in ("loss_objective", "loss_critic", "loss_entropy")).backward()
            optimizer.step()
    assert ends > 0
    assert all(not torch.equal(a, b) for a, b in zip(before, nets.parameters()))

    export(nets, envs.envs, tmp_path / "policy.bundle", steps=4 * 8 * 128)
    bundle, one = Bundle(tmp_path / "policy.bundle"), ClusterEnv("quickstart", sets=SETS)
    observation, info = one.reset(seed=1)
    for _ in range(300):
        with torch.no_grad():
            scores = nets["actor"](torch.from_numpy(observation)).numpy()
        action = int(np.where(info["action_mask"], scores, -np.inf).argmax())
        assert bundle.act(observation, info["action_mask"]) == action
        observation, _, terminated, truncated, info = one.step(action)
        if terminated or truncated:
            observation, info = one.reset()
