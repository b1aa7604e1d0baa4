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


def test_maskable_ppo_trains_on_ten_thousand_decisions():
    envs = ClusterVecEnv("quickstart", 16, sets=SETS, seed=1, half_life_secs=7200.0, present_value=True)
    model = MaskablePPO("MlpPolicy", envs, gamma=1.0, n_steps=128, batch_size=512, seed=0)
    before = [parameter.detach().clone() for parameter in model.policy.parameters()]
    model.learn(10_000)
    assert model.num_timesteps >= 10_000
    changed = [not np.array_equal(a.numpy(), b.detach().numpy()) for a, b in zip(before, model.policy.parameters())]
    assert all(changed)
    assert len(model.ep_info_buffer) > 10 and all(np.isfinite(episode["r"]) for episode in model.ep_info_buffer)


def test_what_gives_wrong_observations_is_refused():
    for option in ({"copy": False}, {"autoreset_mode": "NEXT_STEP"}):
        with pytest.raises(TypeError, match="is fixed"):
            ClusterVecEnv("quickstart", 2, sets=SETS, **option)


@pytest.mark.parametrize(("activation", "kind"), [("ReLU", "mlp"), ("Tanh", "onnx")])
def test_an_exported_policy_decides_as_its_net(tmp_path, activation, kind):
    import torch

    from goodput_gym import Bundle, export

    envs = ClusterVecEnv("quickstart", 4, sets=SETS, seed=1)
    between = {"activation_fn": getattr(torch.nn, activation)}
    model = MaskablePPO("MlpPolicy", envs, n_steps=64, batch_size=128, policy_kwargs=between, seed=0)
    model.learn(512)
    export(model, envs, tmp_path / "policy.bundle", steps=model.num_timesteps)
    bundle, env = Bundle(str(tmp_path / "policy.bundle")), ClusterEnv("quickstart", sets=SETS)
    assert bundle.kind == kind
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


def transformer(env):
    """A transformer over the job slots of an environment, with a value beside the scores."""
    import torch
    from torch import nn

    slots, features, verbs = env.slots, env.slot_features, env.verbs

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.slot, self.cluster = nn.Linear(features, 16), nn.Linear(env.cluster_features, 16)
            self.encoder = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
            self.verbs, self.wait, self.value = nn.Linear(16, verbs), nn.Linear(16, 1), nn.Linear(16, 1)

        def forward(self, observation):
            rows = observation[:, : slots * features].reshape(-1, slots, features)
            jobs = self.slot(rows) + self.cluster(observation[:, slots * features :]).unsqueeze(1)
            jobs = self.encoder(torch.tanh(jobs))
            whole = jobs.mean(1)
            return torch.cat([self.verbs(jobs).flatten(1), self.wait(whole)], 1), self.value(whole)

    return Transformer()


def sequences(env, activation):
    """Actor and critic as two sequences."""
    from torch import nn

    between = [] if activation is None else [getattr(nn, activation)()]
    return nn.ModuleDict({
        "actor": nn.Sequential(nn.Linear(len(env.features), 16), *between, nn.Linear(16, len(env.action_names))),
        "critic": nn.Sequential(nn.Linear(len(env.features), 16), *between, nn.Linear(16, 1)),
    })


NETS = {
    "relu": ("mlp", lambda env: sequences(env, "ReLU")),
    "tanh": ("onnx", lambda env: sequences(env, "Tanh")),
    "linear": ("onnx", lambda env: sequences(env, None)),
    "transformer": ("onnx", transformer),
}


@pytest.mark.parametrize(("kind", "make"), NETS.values(), ids=NETS)
def test_a_module_of_torch_decides_alike(tmp_path, kind, make):
    import torch

    from goodput_gym import Bundle, export

    torch.manual_seed(1)
    env = ClusterEnv("quickstart", sets=SETS)
    net, path = make(env), tmp_path / "policy.bundle"
    export(net, env, path)
    bundle = Bundle(path)
    assert bundle.kind == kind
    net.eval()
    scorer = net["actor"] if hasattr(net, "actor") else lambda row: net(row)[0]
    observation, info = env.reset(seed=1)
    for _ in range(1000):
        with torch.no_grad():
            scores = scorer(torch.from_numpy(observation).unsqueeze(0))[0].numpy()
        action = int(np.where(info["action_mask"], scores, -np.inf).argmax())
        assert bundle.act(observation, info["action_mask"]) == bundle.act(observation, env.action_masks()) == action
        observation, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            observation, info = env.reset()


def test_a_misspelt_layer_is_a_graph_or_an_error_where_a_perceptron_is_asked_for(tmp_path):
    from torch import nn

    from goodput_gym import Bundle, export

    env, path = ClusterEnv("quickstart", sets=SETS), tmp_path / "policy.bundle"
    net = sequences(env, "ReLU")
    misspelt = nn.ModuleDict({"actor": net["actor"], "critik": net["critic"]})
    export(net, env, path, kind="onnx")
    assert Bundle(path).kind == "onnx"
    export(misspelt, env, path)
    assert Bundle(path).kind == "onnx"
    path.unlink()
    with pytest.raises(ValueError, match="no net of a known kind has these layers: actor.0, actor.2, critik.0"):
        export(misspelt, env, path, kind="mlp")
    assert not path.exists()


def test_a_policy_that_remembers_is_refused(tmp_path):
    from sb3_contrib import RecurrentPPO

    from goodput_gym import export

    env, path = ClusterEnv("quickstart", sets=SETS), tmp_path / "policy.bundle"
    # As wide as the features, so that the net would score without its memory.
    width = len(env.features)
    model = RecurrentPPO("MlpLstmPolicy", env, n_steps=8, policy_kwargs={"lstm_hidden_size": width, "net_arch": [8]})
    for kind in (None, "onnx"):
        with pytest.raises(ValueError, match=r"the policy remembers \(lstm_actor\)"):
            export(model, env, path, kind=kind)
    assert not path.exists()


def test_without_the_exporter_of_torch_the_remedy_is_said(tmp_path, monkeypatch):
    import inspect

    import torch

    from goodput_gym import _onnx, export

    if "dynamo" not in inspect.signature(torch.onnx.export).parameters:
        pytest.skip("this torch exports without a package")
    monkeypatch.setattr(_onnx.importlib.util, "find_spec", lambda name: None)
    env, path = ClusterEnv("quickstart", sets=SETS), tmp_path / "policy.bundle"
    with pytest.raises(ImportError, match="pip install onnxscript"):
        export(sequences(env, "Tanh"), env, path)
    assert not path.exists()


def test_a_graph_that_does_not_fit_is_named(tmp_path):
    import torch
    from torch import nn

    from goodput_gym import export

    env, path = ClusterEnv("quickstart", sets=SETS), tmp_path / "policy.bundle"
    dim, actions = len(env.features), len(env.action_names)
    with pytest.raises(ValueError, match=rf"f32\) \[1, {actions - 1}\], expected f32 \[1, {actions}\]: a score"):
        export(nn.Sequential(nn.Linear(dim, 8), nn.Tanh(), nn.Linear(8, actions - 1)), env, path)

    class Determinant(nn.Module):
        def forward(self, observation):
            return torch.det(observation[:, :4].reshape(-1, 2, 2)).unsqueeze(1) * observation[:, :actions]

    with pytest.raises(ValueError, match="Det operator not supported"):
        export(Determinant(), env, path)
    (tmp_path / "net.onnx").write_bytes(b"no graph")
    with pytest.raises(ValueError, match="the net cannot be read"):
        export(tmp_path / "net.onnx", env, path)
    with pytest.raises(FileNotFoundError):
        export(tmp_path / "none.onnx", env, path)
    assert not path.exists()
