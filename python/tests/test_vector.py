"""Vectors of environments: rows, threads, autoreset, lent arrays, pickles."""

import multiprocessing
import pickle

import gymnasium
import numpy as np
import pytest
from conftest import SETS, allowed
from gymnasium.vector import AutoresetMode

from goodput_gym import ClusterEnv, ClusterVectorEnv

STEPS = 700


def vector(count=3, **options):
    return ClusterVectorEnv("quickstart", count, sets=SETS, **options)


def play(envs, steps=STEPS, seed=9):
    """All that a vector returns, step by step."""
    _, infos = envs.reset(seed=seed)
    trace = []
    for step in range(steps):
        out = envs.step(allowed(infos["action_mask"], step))
        infos = out[4]
        trace.append([np.array(part) for part in (*out[:4], infos["action_mask"], infos["elapsed_secs"])])
    return trace


def equal(one, other):
    return all(np.array_equal(a, b) for left, right in zip(one, other, strict=True) for a, b in zip(left, right))


def test_gymnasium_makes_a_vector():
    envs = gymnasium.make_vec("goodput_gym/Cluster-v0", num_envs=2, sets=SETS)
    observations, infos = envs.reset(seed=1)
    assert observations in envs.observation_space and infos["action_mask"].shape == (2, 8 * 3 + 1)
    wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(vector(2))
    _, infos = wrapped.reset(seed=1)
    episodes = 0
    for step in range(STEPS):
        *_, infos = wrapped.step(allowed(infos["action_mask"], step))
        episodes += int(infos.get("_episode", np.zeros(2)).sum())
    assert episodes > 1


def test_a_row_is_an_environment_of_its_own():
    envs, alone = vector(3), [ClusterEnv("quickstart", sets=SETS, seed=9, index=index) for index in range(3)]
    _, infos = envs.reset(seed=9)
    masks = [env.reset()[1]["action_mask"] for env in alone]
    ended = 0
    for step in range(STEPS):
        assert np.array_equal(infos["action_mask"], masks)
        actions = allowed(infos["action_mask"], step)
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        for row, env in enumerate(alone):
            observation, reward, end, cut, info = env.step(actions[row])
            assert (reward, end, cut) == (rewards[row], terminated[row], truncated[row])
            if end or cut:
                ended += 1
                assert np.array_equal(observation, infos["final_obs"][row]) and infos["_final_obs"][row]
                assert info["jct_mean_secs"] == infos["jct_mean_secs"][row]
                final = infos["final_info"]
                assert {name for name in final if not name.startswith("_")} == set(info)
                for name, value in info.items():
                    assert np.array_equal(final[name][row], value) and final[f"_{name}"][row], name
                observation, info = env.reset()
            assert np.array_equal(observation, observations[row])
            masks[row] = info["action_mask"]
    assert ended > 3


def test_a_sequence_of_seeds_has_one_for_each_environment():
    envs = vector(2)
    envs.reset(seed=[4, 5])
    for row, seed in enumerate([4, 5]):
        observation, _ = ClusterEnv("quickstart", sets=SETS).reset(seed=seed)
        assert np.array_equal(observation, envs.reset(seed=[4, 5])[0][row])
    # None leaves an environment in its stream.
    alone = ClusterEnv("quickstart", sets=SETS)
    alone.reset(seed=4)
    observations, _ = envs.reset(seed=[None, np.int64(6)])
    assert np.array_equal(observations[0], alone.reset()[0])
    assert np.array_equal(observations[1], alone.reset(seed=6)[0])
    for wrong, error in (([1, 2, 3], ValueError), ([1.0, 2.0], TypeError), (-1, ValueError), (1 << 64, ValueError)):
        with pytest.raises(error, match="seed"):
            envs.reset(seed=wrong)


def test_environments_that_begin_one_by_one_play_their_own_streams():
    whole, parts = vector(3, seed=9), vector(3, seed=9)
    observations, infos = whole.reset()
    parts.reset(options={"reset_mask": np.array([True, False, False])})
    others, _ = parts.reset(options={"reset_mask": np.array([False, True, True])})
    assert np.array_equal(observations, others) and not np.array_equal(observations[1], observations[2])
    with pytest.raises(ValueError, match="'reset_masks' is not known"):
        parts.reset(options={"reset_masks": [True]})
    with pytest.raises(ValueError, match="reset_mask has the shape"):
        parts.reset(options={"reset_mask": [True]})
    with pytest.raises(TypeError, match="expected integers"):
        parts.step(np.full(3, 24.0))


def test_far_held_out_streams_are_no_validation_workloads():
    later = vector(2, split="held-out", first=99).reset(seed=1)[0]
    validation = vector(2, split="validation").reset(seed=1)[0]
    assert not any(np.array_equal(one, other) for one in later for other in validation)


def test_every_info_says_in_which_rows_it_is_set():
    envs = vector(2, half_life_secs=3600.0, on_forbidden="wait", autoreset_mode="SAME_STEP")
    _, infos = envs.reset(seed=1)
    for step in range(STEPS):
        names = {name for name in infos if not name.startswith("_")}
        assert {name for name in infos if name.startswith("_")} == {f"_{name}" for name in names}
        assert all(infos[f"_{name}"].dtype == bool and infos[f"_{name}"].shape == (2,) for name in names)
        actions = allowed(infos["action_mask"], step)
        actions[step % 2] = np.flatnonzero(infos["action_mask"][step % 2] == 0)[0]
        *_, terminated, truncated, infos = envs.step(actions)
        assert np.array_equal(infos["_jct_mean_secs"], terminated | truncated)
        assert np.array_equal(infos["_forbidden"], np.arange(2) == step % 2)


def step_in_a_fork(envs, actions, results):
    results.put(envs.step(actions)[0])


def test_a_fork_steps_on_threads_of_its_own():
    envs = vector(4, threads=2)
    _, infos = envs.reset(seed=1)
    actions = allowed(infos["action_mask"], 0)
    forks = multiprocessing.get_context("fork")
    results = forks.Queue()
    child = forks.Process(target=step_in_a_fork, args=(envs, actions, results))
    child.start()
    observations = results.get(timeout=60)
    child.join()
    assert np.array_equal(observations, envs.step(actions)[0])


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_change_nothing(threads):
    assert equal(play(vector(5)), play(vector(5, threads=threads)))


def test_next_step_plays_the_same_episodes_a_step_later():
    same, later = vector(1), vector(1, autoreset_mode=AutoresetMode.NEXT_STEP)
    (observations, infos), (other, notes) = same.reset(seed=9), later.reset(seed=9)
    ended = 0
    for step in range(STEPS):
        assert np.array_equal(observations, other) and np.array_equal(infos["action_mask"], notes["action_mask"])
        actions = allowed(infos["action_mask"], step)
        observations, rewards, terminated, truncated, infos = same.step(actions)
        other, more, end, cut, notes = later.step(actions)
        assert np.array_equal(rewards, more) and np.array_equal(terminated, end) and np.array_equal(truncated, cut)
        assert "final_obs" not in notes
        if terminated[0] or truncated[0]:
            ended += 1
            assert np.array_equal(other[0], infos["final_obs"][0])
            # Any action will do: it begins the next episode.
            other, more, end, cut, notes = later.step(np.array([0]))
            assert more[0] == 0.0 and not end[0] and not cut[0]
    assert ended > 1


def test_disabled_waits_for_a_reset():
    envs = vector(2, autoreset_mode=AutoresetMode.DISABLED)
    _, infos = envs.reset(seed=9)
    for step in range(5000):
        *_, terminated, truncated, infos = envs.step(allowed(infos["action_mask"], step))
        ended = terminated | truncated
        if ended.any():
            break
    assert ended.any()
    before, mask = envs.action_masks(), infos["action_mask"]
    with pytest.raises(RuntimeError, match="no episode is under way"):
        envs.step(allowed(mask, 0))
    assert np.array_equal(before, envs.action_masks())
    envs.reset(options={"reset_mask": ended})
    envs.step(allowed(envs.action_masks(), 0))


def test_one_forbidden_action_steps_none():
    envs, twin = vector(3), vector(3)
    _, infos = envs.reset(seed=2)
    mask = infos["action_mask"]
    actions = allowed(mask, 0)
    actions[2] = np.flatnonzero(mask[2] == 0)[0]
    with pytest.raises(ValueError, match="environment 2: action"):
        envs.step(actions)
    with pytest.raises(ValueError, match="2 actions, expected 3"):
        envs.step(actions[:2])
    twin.reset(seed=2)
    good = allowed(mask, 0)
    assert np.array_equal(envs.step(good)[0], twin.step(good)[0])


def test_lent_arrays_are_read_only_and_written_by_the_next_step():
    envs = vector(2, copy=False)
    observations, infos = envs.reset(seed=9)
    first = observations.copy()
    with pytest.raises(ValueError, match="read-only"):
        observations[0, 0] = 3.0
    again, *_ = envs.step(allowed(infos["action_mask"], 0))
    assert np.shares_memory(again, observations) and not np.array_equal(first, observations)
    assert equal(play(vector(2, copy=False)), play(vector(2)))


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_pickled_vector_continues_like_the_original(mode):
    envs = vector(2, autoreset_mode=mode, seed=3)
    _, infos = envs.reset()
    over = np.zeros(2, bool)
    for step in range(200):
        if mode == AutoresetMode.DISABLED and over.any():
            _, infos = envs.reset(options={"reset_mask": over})
        _, _, terminated, truncated, infos = envs.step(allowed(infos["action_mask"], step))
        over = terminated | truncated
    twin = pickle.loads(pickle.dumps(envs))
    assert np.array_equal(envs.action_masks(), twin.action_masks())
    for step in range(100):
        if mode == AutoresetMode.DISABLED and over.any():
            envs.reset(options={"reset_mask": over}), twin.reset(options={"reset_mask": over})
        actions = allowed(envs.action_masks(), step)
        one, other = envs.step(actions), twin.step(actions)
        assert all(np.array_equal(a, b) for a, b in zip(one[:4], other[:4]))
        over = one[2] | one[3]


def test_a_round_ends_after_its_last_action():
    envs = vector(3, round_actions=2)
    _, infos = envs.reset(seed=9)
    wait, length, longest = len(envs.action_names) - 1, np.zeros(3, dtype=int), 0
    for step in range(STEPS):
        closed = (length >= 2) & (infos["action_mask"][:, wait] == 1)
        assert (infos["action_mask"][closed].sum(axis=1) == 1).all()
        longest = max(longest, int(length.max()))
        if step == 300:
            assert np.array_equal(pickle.loads(pickle.dumps(envs)).action_masks(), envs.action_masks())
        actions = allowed(infos["action_mask"], step)
        *_, terminated, truncated, infos = envs.step(actions)
        length = np.where((actions == wait) | terminated | truncated, 0, length + 1)
    assert longest >= 2
    # An action that the mask forbids is refused, although the cluster would take it.
    free, bound = vector(1), vector(1, round_actions=1)
    masks = [envs.reset(seed=9)[1]["action_mask"] for envs in (free, bound)]
    for step in range(200):
        forbidden = np.flatnonzero((masks[0][0] == 1) & (masks[1][0] == 0))
        if len(forbidden):
            with pytest.raises(ValueError, match="not allowed"):
                bound.step(forbidden[:1])
            break
        actions = allowed(masks[1], step)
        masks = [envs.step(actions)[4]["action_mask"] for envs in (free, bound)]
    assert len(forbidden)
    with pytest.raises(ValueError, match="round_actions is 0"):
        vector(1, round_actions=0)


def test_masked_observations_and_text():
    envs = vector(2, observation="masked", render_mode="ansi")
    observations, infos = envs.reset(seed=9)
    assert observations in envs.observation_space
    assert np.array_equal(observations["action_mask"] > 0, infos["action_mask"])
    assert all("accelerators free" in text for text in envs.render())
