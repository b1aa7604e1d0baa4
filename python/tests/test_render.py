"""Pictures of an environment: bars that match what jobs hold, and pixels."""

import gymnasium
import numpy as np
import pytest
from conftest import SETS

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from goodput_gym import ClusterEnv, ClusterVectorEnv, _gantt, policies  # noqa: E402


def played(mode, steps=400):
    env = ClusterEnv("quickstart", sets=SETS, render_mode=mode)
    env.reset(seed=1)
    expert = policies["tiresias"](env)
    for _ in range(steps):
        *_, terminated, truncated, _ = env.step(int(expert.actions()[0]))
        if terminated or truncated:
            break
    return env


def test_a_picture_has_a_bar_for_every_accelerator_that_is_held():
    env = played("gantt")
    now, nodes, stays, waiting, applications = env._core.picture(0)
    assert len(nodes) and stays and waiting and len(applications) == SETS["workload.synthetic.diurnal.jobs"]
    bars = _gantt._bars(nodes, stays, now)
    area = sum(lanes * (to - begin) for *_, lanes, begin, to in bars)
    assert area == pytest.approx(sum(gpus * ((now if to is None else to) - begin) for _, _, gpus, begin, to in stays))
    # No two bars of a node share a lane at one time.
    for one in range(len(bars)):
        for other in range(one):
            (_, a, low, count, begin, end), (_, b, from_, more, start, to) = bars[one], bars[other]
            apart = a != b or low + count <= from_ or from_ + more <= low
            assert apart or end <= start + 1e-9 or to <= begin + 1e-9
    assert all(low + count <= nodes[node][1] for _, node, low, count, _, _ in bars)


def test_pixels_show_the_bars():
    env = played("rgb_array", 60)
    pixels = env.render()
    assert pixels.dtype == np.uint8 and pixels.shape == (650, 1100, 3)
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50
    figure = played("gantt", 60).render()
    assert np.array_equal(_gantt.pixels(figure), pixels)
    assert "accelerators held" in figure.axes[0].get_title(loc="left")


def test_gymnasium_and_vectors_show_the_pixels():
    env = gymnasium.make("goodput_gym/Cluster-v0", sets=SETS, render_mode="rgb_array")
    env.reset(seed=1)
    assert env.render().shape == (650, 1100, 3)
    envs = ClusterVectorEnv("quickstart", 2, sets=SETS, render_mode="rgb_array")
    envs.reset(seed=1)
    assert [image.shape for image in envs.render()] == [(650, 1100, 3)] * 2


def test_stable_baselines3_shows_the_pixels_of_all_environments():
    pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed")
    from goodput_gym.sb3 import ClusterVecEnv

    envs = ClusterVecEnv("quickstart", 2, sets=SETS, seed=1, render_mode="rgb_array")
    envs.reset()
    one, other = envs.get_images()
    assert one.shape == other.shape == (650, 1100, 3) and one.dtype == np.uint8
    # Stable-Baselines3 puts the pictures of its environments side by side or one below another.
    whole = envs.render(mode="rgb_array")
    assert whole.shape == (1300, 1100, 3)
    assert np.array_equal(whole[:650], one) and np.array_equal(whole[650:], other)
    without = ClusterVecEnv("quickstart", 2, sets=SETS, seed=1)
    without.reset()
    assert without.get_images() == [None, None]


def test_without_a_picture_nothing_is_noted():
    assert played("ansi", 60)._core.picture(0)[2] == []
    with pytest.raises(ValueError, match="'ansi', 'rgb_array', 'gantt'"):
        ClusterEnv("quickstart", render_mode="human")
