"""Nets as bundles decide what they decide here; experts, bundles that ship, and runs."""

import json

import gymnasium
import numpy as np
import pytest
from conftest import SETS, allowed

import goodput_gym
from goodput_gym import Bundle, ClusterEnv, ClusterVectorEnv, export, read_run


def relu(x):
    return np.maximum(x, 0.0)


def state_of(shapes, seed):
    """Random matrices `(outputs, inputs)` and biases by name of the layer."""
    random = np.random.default_rng(seed)
    state = {}
    for name, (inputs, outputs) in shapes.items():
        state[f"{name}.weight"] = (random.standard_normal((outputs, inputs)) / np.sqrt(inputs)).astype(np.float32)
        state[f"{name}.bias"] = (0.1 * random.standard_normal(outputs)).astype(np.float32)
    return state


def perceptron(env, names):
    """A state dict of the actor and critic with these names of layers, and the scores of its actor."""
    dim, actions = len(env.features), len(env.action_names)
    actor, critic = names
    widths = [dim, 24, 16]
    shapes = {}
    for trunk, last in ((actor, actions), (critic, 1)):
        sizes = [*widths, last]
        shapes |= {name: (sizes[at], sizes[at + 1]) for at, name in enumerate(trunk)}
    state = state_of(shapes, 5)

    def scores(x):
        for name in actor[:-1]:
            x = relu(state[f"{name}.weight"] @ x + state[f"{name}.bias"])
        return state[f"{actor[-1]}.weight"] @ x + state[f"{actor[-1]}.bias"]

    return state, scores


def decides_alike(env, bundle, scores, decisions=1000):
    """Whether scores and bundle choose one action, over decisions of the bundle."""
    observation, info = env.reset(seed=1)
    for _ in range(decisions):
        mask = info["action_mask"]
        action = bundle.act(observation, mask)
        assert action == int(np.where(mask, scores(observation.astype(np.float64)), -np.inf).argmax())
        observation, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            observation, info = env.reset()


NAMES = {
    "own": (["actor1", "actor2", "actor_out"], ["critic1", "critic2", "critic_out"]),
    "sequential": (["actor.0", "actor.2", "actor.4"], ["critic.0", "critic.2", "critic.4"]),
    "stable-baselines3": (
        ["mlp_extractor.policy_net.0", "mlp_extractor.policy_net.2", "action_net"],
        ["mlp_extractor.value_net.0", "mlp_extractor.value_net.2", "value_net"],
    ),
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_a_perceptron_decides_alike(small, tmp_path, names):
    env = ClusterEnv(**small)
    state, scores = perceptron(env, names)
    path = tmp_path / "policy.bundle"
    sha256 = export(state, env, path, seed=3, steps=1000)
    assert len(sha256) == 64
    bundle = Bundle(str(path))
    assert bundle.kind == "mlp"
    decides_alike(env, bundle, scores)


def test_a_set_encoder_decides_alike(small, tmp_path):
    env = ClusterEnv(**small)
    width, slots, verbs, f = 12, env.slots, env.verbs, env.slot_features
    pooled = 2 * width + env.cluster_features
    shapes = {"slot1": (f, width), "slot2": (width, width), "pool1": (pooled, 2 * width), "pool2": (2 * width, width)}
    shapes |= {"project": (width, width), "verbs": (width, verbs), "wait": (width, 1)}
    shapes |= {"value1": (pooled, 2 * width), "value2": (2 * width, width), "value3": (width, 1)}
    state = state_of(shapes, 6)

    def layer(name, x):
        return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]

    def scores(x):
        rows, cluster = x[: slots * f].reshape(slots, f), x[slots * f :]
        jobs = relu(layer("slot2", relu(layer("slot1", rows))))
        kept = jobs[rows[:, 0] > 0]
        mean, most = (kept.mean(0), kept.max(0)) if len(kept) else (np.zeros(width), np.zeros(width))
        context = layer("pool2", relu(layer("pool1", np.concatenate([mean, most, cluster]))))
        informed = relu(layer("project", jobs) + context)
        return np.concatenate([layer("verbs", informed).ravel(), layer("wait", relu(context))])

    path = tmp_path / "policy.bundle"
    export(state, ClusterVectorEnv("quickstart", 2, sets=SETS), path)
    bundle = Bundle(str(path))
    assert bundle.kind == "set"
    decides_alike(env, bundle, scores)


def test_what_does_not_fit_is_refused(small, tmp_path):
    env, path = ClusterEnv(**small), tmp_path / "policy.bundle"
    state, _ = perceptron(env, NAMES["own"])
    with pytest.raises(ValueError, match="no net of a known kind"):
        export({"layer.weight": state["actor1.weight"], "layer.bias": state["actor1.bias"]}, env, path)
    with pytest.raises(ValueError, match="'actor1' has|\"actor1\" has"):
        export(state, ClusterEnv("quickstart"), path)
    with pytest.raises(ValueError, match="no place for log_std"):
        export(state | {"log_std": np.zeros(3)}, env, path)
    with pytest.raises(ValueError, match="actor9|no net"):
        export(state | state_of({"actor9": (16, 16)}, 1), env, path)
    narrow = state_of({"critic1": (len(env.features), 8), "critic2": (8, 8), "critic_out": (8, 1)}, 2)
    with pytest.raises(ValueError, match=r"critic are \[8, 8\] wide, and those of the actor \[24, 16\]"):
        export(state | narrow, env, path)
    with pytest.raises(ValueError, match="NormalizeObservation changes the observations"):
        export(state, gymnasium.wrappers.NormalizeObservation(env), path)
    state["actor1.bias"][0] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        export(state, env, path)
    with pytest.raises(TypeError, match="expected an environment of goodput_gym"):
        export(state, object(), path)
    with pytest.raises(ValueError, match="looks at the cluster itself"):
        Bundle("zoo:elastic")
    assert not path.exists()


def test_a_kind_that_is_asked_for_is_written_or_refused(small, tmp_path):
    env, path = ClusterEnv(**small), tmp_path / "policy.bundle"
    state, _ = perceptron(env, NAMES["sequential"])
    export(state, env, path, kind="mlp")
    assert Bundle(path).kind == "mlp"
    path.unlink()
    refused = {"set": "the net is of the kind 'mlp'", "onnx": "a module of torch", "MLP": "expected one of"}
    for kind, words in refused.items():
        with pytest.raises(ValueError, match=words):
            export(state, env, path, kind=kind)
    (tmp_path / "net.onnx").write_bytes(b"no graph")
    with pytest.raises(ValueError, match="an ONNX file is of the kind 'onnx'"):
        export(tmp_path / "net.onnx", env, path, kind="mlp")
    assert not path.exists()


def test_an_expert_schedules_better_than_chance(small):
    """Mean completion times of one held-out workload: the expert's beside that of arbitrary actions."""

    def mean_jct(choose):
        env = ClusterEnv(**small, split="held-out")
        _, info = env.reset()
        expert = env.expert("pollux-fast")
        for step in range(5000):
            _, _, terminated, truncated, info = env.step(choose(expert, info["action_mask"], step))
            if terminated or truncated:
                return info["jct_mean_secs"]
        raise AssertionError("the episode did not end")

    expert = mean_jct(lambda expert, mask, step: int(expert.actions()[0]))
    chance = mean_jct(lambda expert, mask, step: int(allowed(mask, step)[0]))
    assert expert < chance


def test_experts_of_a_vector_are_asked_together(small):
    envs = ClusterVectorEnv("quickstart", 3, sets=SETS)
    envs.reset(seed=1)
    assert {"fifo", "tiresias", "sia"} <= set(goodput_gym.POLICIES)
    expert = envs.expert("tiresias")
    for _ in range(1500):
        # An action that is forbidden would raise.
        *_, infos = envs.step(expert.actions())
    with pytest.raises(ValueError, match="did you mean"):
        envs.expert("tiresas")


def test_policies_are_a_mapping_by_name(small):
    policies = goodput_gym.policies
    assert tuple(policies) == goodput_gym.POLICIES and len(policies) == len(goodput_gym.POLICIES) > 20
    env = gymnasium.make("goodput_gym/Cluster-v0", **small)
    env.reset(seed=1)
    assert policies["sia"](env).actions().shape == (1,)
    assert policies["gandiva"](env, quantum_secs=60).name == "gandiva(quantum_secs=60)"
    with pytest.raises(KeyError, match="did you mean 'tiresias'"):
        policies["tiresas"]
    assert "tiresas" not in policies and policies.get("tiresas") is None


def test_an_expert_forgets_an_episode_when_its_seed_is_played_again(small):
    env = ClusterEnv(**small)

    def plays(expert):
        env.reset(seed=5)
        found, ended = [], False
        while not ended and len(found) < 300:
            found.append(int(expert.actions()[0]))
            *_, terminated, truncated, _ = env.step(found[-1])
            ended = terminated or truncated
        return found

    expert = env.expert("gandiva(quantum_secs=60)")
    assert plays(expert) == plays(expert) == plays(env.expert("gandiva(quantum_secs=60)"))


def test_a_table_of_a_run_is_read(tmp_path):
    polars = pytest.importorskip("polars")
    (tmp_path / "summary.json").write_text("{}")
    table = polars.DataFrame({"policy": ["fifo", "tiresias"], "jct_mean_secs": [3.0, 2.0]})
    table.write_parquet(tmp_path / "runs.parquet")
    run = read_run(tmp_path)
    assert run.tables == ("runs",)
    assert run.polars("runs").equals(table)


def test_a_run_is_read(tmp_path):
    (tmp_path / "summary.json").write_text(json.dumps({"policies": []}))
    run = read_run(tmp_path)
    assert run.summary == {"policies": []} and run.tables == ()
    with pytest.raises(KeyError, match="no table 'runs'"):
        run.pandas("runs")
    with pytest.raises(FileNotFoundError, match="summary.json"):
        read_run(tmp_path / "none")
