"""One environment: Gymnasium's conventions, seeds, forbidden actions, pickles and rewards."""

import copy
import pickle
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from conftest import SETS, allowed
from gymnasium.utils.env_checker import check_env

import goodput_gym
from goodput_gym import ClusterEnv


def play(env, seed, steps, start=None):
    """Observations, masks, rewards and ends of `steps` allowed actions; episodes follow one another."""
    observation, info = env.reset(seed=seed) if start is None else start
    trace = []
    for step in range(steps):
        observation, reward, terminated, truncated, info = env.step(allowed(info["action_mask"], step)[0])
        trace.append((observation, info["action_mask"], reward, terminated, truncated, info["elapsed_secs"]))
        if terminated or truncated:
            observation, info = env.reset()
    return trace


def equal(one, other):
    return len(one) == len(other) and all(
        np.array_equal(a[0], b[0]) and np.array_equal(a[1], b[1]) and a[2:] == b[2:] for a, b in zip(one, other)
    )


@pytest.mark.parametrize("observation", ["flat", "masked"])
def test_gymnasium_checks_it(small, observation):
    env = gymnasium.make("goodput_gym/Cluster-v0", **small, on_forbidden="wait", observation=observation)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


@pytest.mark.parametrize(
    "program",
    [
        "import goodput_gym, gymnasium; gymnasium.make('goodput_gym/Cluster-v0')",
        "import gymnasium, goodput_gym; gymnasium.make('goodput_gym/Cluster-v0')",
        "import gymnasium; gymnasium.make('goodput_gym:goodput_gym/Cluster-v0')",
    ],
)
def test_importing_the_package_registers_it(program):
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_seed_gives_one_stream_of_episodes(small):
    one, other = play(ClusterEnv(**small), 5, 600), play(ClusterEnv(**small), 5, 600)
    assert equal(one, other)
    assert sum(step[3] for step in one) >= 1, "no episode ended"
    assert not equal(one, play(ClusterEnv(**small), 6, 600))
    # Without any seed, two environments differ.
    assert not equal(play(ClusterEnv(**small), None, 200), play(ClusterEnv(**small), None, 200))


def test_held_out_workloads_are_those_of_every_seed(small):
    one = play(ClusterEnv(**small, split="held-out"), 5, 100)
    assert equal(one, play(ClusterEnv(**small, split="held-out"), 6, 100))


def test_a_forbidden_action_is_refused_and_nothing_is_stepped(small):
    env = ClusterEnv(**small)
    observation, info = env.reset(seed=1)
    forbidden = int(np.flatnonzero(info["action_mask"] == 0)[0])
    for action in (forbidden, -1, int(env.action_space.n)):
        with pytest.raises(ValueError, match="not allowed"):
            env.step(action)
    assert equal(play(env, None, 300, (observation, info)), play(ClusterEnv(**small), 1, 300))


def test_a_forbidden_action_may_wait_instead(small):
    env, twin = ClusterEnv(**small, on_forbidden="wait"), ClusterEnv(**small)
    _, info = env.reset(seed=1)
    twin.reset(seed=1)
    replaced = 0
    for step in range(200):
        mask = info["action_mask"]
        forbidden = np.flatnonzero(mask == 0)
        asked = int(forbidden[step % len(forbidden)])
        meant = len(mask) - 1 if mask[-1] else int(mask.argmax())
        a, b = env.step(asked), twin.step(meant)
        assert np.array_equal(a[0], b[0]) and a[1:4] == b[1:4]
        assert a[4]["forbidden"] and "forbidden" not in b[4]
        replaced += 1
        info = a[4]
        if a[2] or a[3]:
            (_, info), _ = env.reset(), twin.reset()
    assert replaced == 200


def test_gymnasium_draws_allowed_actions_by_the_mask(small):
    env = ClusterEnv(**small)
    _, info = env.reset(seed=1)
    for _ in range(100):
        assert info["action_mask"].dtype == np.int8 and np.array_equal(info["action_mask"] == 1, env.action_masks())
        *_, terminated, truncated, info = env.step(env.action_space.sample(info["action_mask"]))
        if terminated or truncated:
            _, info = env.reset()


def test_actions_that_are_no_integers_and_unknown_options_are_refused(small):
    env = ClusterEnv(**small)
    with pytest.raises(ValueError, match="reset_mask"):
        env.reset(options={"reset_mask": [True]})
    for seed in (1.5, "1", True):
        with pytest.raises((TypeError, gymnasium.error.Error)):
            env.reset(seed=seed)
    env.reset(seed=np.int64(1))
    for action in (24.0, True, "24"):
        with pytest.raises(TypeError, match="expected integers"):
            env.step(action)
    with pytest.raises(ValueError, match="index is"):
        ClusterEnv(**small, index=1 << 40).reset(seed=1)


def test_values_of_numpy_are_values_of_an_experiment():
    env = ClusterEnv("quickstart", sets={"environment.slots": np.int32(8), "evaluate.loads": [np.float64(0.5)]})
    assert env.slots == 8 and "loads = [0.5]" in env.resolved_config
    with pytest.raises(TypeError, match="is a NoneType"):
        ClusterEnv("quickstart", sets={"environment.slots": None})


def test_a_step_outside_an_episode_is_refused(small):
    with pytest.raises(RuntimeError, match="reset"):
        ClusterEnv(**small).step(0)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_continues_like_the_original(small, again):
    env = ClusterEnv(**small)
    _, info = env.reset(seed=3)
    for step in range(150):
        *_, terminated, truncated, info = env.step(allowed(info["action_mask"], step)[0])
        if terminated or truncated:
            _, info = env.reset()
    twin = again(env)
    start = (None, {"action_mask": env.action_masks()})
    assert np.array_equal(env.action_masks(), twin.action_masks())
    assert equal(play(env, None, 300, start), play(twin, None, 300, start))


def test_every_number_has_a_name_and_a_unit(small):
    env = ClusterEnv(**small)
    observation, _ = env.reset(seed=1)
    names = [feature.name for feature in env.features]
    assert len(names) == len(set(names)) == len(observation)
    assert all(feature.unit for feature in env.features)
    assert len(env.action_names) == env.action_space.n and env.action_names[-1] == "wait"
    assert observation[names.index("job.0.occupied")] == 1.0
    assert env.slots * env.slot_features + env.cluster_features == len(observation)


def rewards(seed, **options):
    env = ClusterEnv("quickstart", sets=SETS, **options)
    _, info = env.reset(seed=seed)
    found = []
    for step in range(2000):
        _, reward, terminated, truncated, info = env.step(allowed(info["action_mask"], step)[0])
        found.append((reward, info["elapsed_secs"], info.get("discount", 1.0)))
        if terminated or truncated:
            return np.array(found)
    raise AssertionError("the episode did not end")


def test_rewards_are_discounted_by_time():
    plain, slow = rewards(2), rewards(2, half_life_secs=1e12)
    assert np.allclose(plain[:, 0], slow[:, 0], rtol=1e-6, atol=1e-12)
    half_life = 7200.0
    within = rewards(2, half_life_secs=half_life)
    whole = rewards(2, half_life_secs=half_life, present_value=True)
    assert np.allclose(within[:, 2], 0.5 ** (within[:, 1] / half_life))
    # Weighted by what has passed, the rewards of a semi-Markov learner are the present values, but for the time from
    # the beginning of the workload to the first decision.
    passed = np.concatenate([[1.0], np.cumprod(within[:-1, 2])])
    paid = within[:, 0] != 0
    factors = whole[paid, 0] / (within[:, 0] * passed)[paid]
    assert 0.9 < factors[0] < 1.0 and np.allclose(factors, factors[0], rtol=1e-9)
    # A step that takes time counts less than its plain integral, and one that takes none costs nothing.
    lasts = plain[:, 1] > 0
    assert (np.abs(within[lasts, 0]) <= np.abs(plain[lasts, 0])).all() and (within[~lasts, 0] == 0).all()
    assert np.abs(within[:, 0]).sum() < 0.999 * np.abs(plain[:, 0]).sum()


def test_an_episode_ends_with_its_mean_completion_time(small):
    env = ClusterEnv(**small)
    _, info = env.reset(seed=4)
    total, ended = 0.0, False
    for step in range(2000):
        _, reward, terminated, truncated, info = env.step(allowed(info["action_mask"], step)[0])
        total += reward
        if terminated or truncated:
            ended = True
            break
    assert ended and terminated
    # The reward is minus the job hours in the system: by Little's law, jobs times their mean completion time.
    assert total == pytest.approx(-SETS["workload.synthetic.diurnal.jobs"] * info["jct_mean_secs"] / 3600.0, rel=1e-9)


def test_it_is_drawn_as_text(small):
    env = gymnasium.make("goodput_gym/Cluster-v0", **small, render_mode="ansi")
    env.reset(seed=1)
    text = env.render()
    assert "accelerators free" in text and "slot" in text


@pytest.mark.parametrize("config", goodput_gym.EXPERIMENTS)
def test_every_experiment_that_ships_can_be_played(config):
    env = ClusterEnv(config)
    _, info = env.reset(seed=1)
    for step in range(20):
        observation, _, terminated, truncated, info = env.step(allowed(info["action_mask"], step)[0])
        assert not (terminated or truncated) and observation in env.observation_space


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"config": "quickstrat"}, FileNotFoundError, "quickstart"),
        ({"split": "test"}, ValueError, 'split is "test", expected "training" or "validation" or "held-out"'),
        ({"sets": {"environment.slotz": 3}}, ValueError, "did you mean `slots`"),
        ({"sets": {"cluster.groups.0.nodes": 0}}, ValueError, "nodes"),
        ({"half_life_secs": -1.0}, ValueError, "half_life_secs is -1"),
        ({"present_value": True}, ValueError, "half_life_secs"),
        ({"observation": "dict"}, ValueError, "'flat' or 'masked'"),
        ({"render_mode": "human"}, ValueError, "ansi"),
        ({"on_forbidden": "ignore"}, ValueError, '"raise" or "wait"'),
    ],
)
def test_what_is_wrong_is_said(arguments, error, message):
    with pytest.raises(error, match=message):
        ClusterEnv(**arguments)
