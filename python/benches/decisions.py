"""Decisions a second of CPU: the package goodput-gym beside the pipe of `goodput env serve`.

    pip install target/wheels/goodput_gym-*.whl && cargo build --release
    python python/benches/decisions.py [SECONDS]

Random allowed actions on the quickstart, one thread. Choosing is not counted. CPU is that of Python and, for the pipe,
of the process that serves the environments.
"""

import os
import pathlib
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "env/clients/python"))

import goodput_pipe  # noqa: E402
import numpy as np  # noqa: E402

import goodput_gym  # noqa: E402

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
QUICKSTART = str(ROOT / "configs/experiment/quickstart.toml")
PROGRAM = str(ROOT / "target/release/goodput")


def served_secs(envs):
    """CPU seconds of the process behind a pipe; 0 without one."""
    process = getattr(envs, "_process", None)
    if process is None:
        return 0.0
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def vector(envs):
    """Decisions a CPU second of a vector."""
    random = np.random.default_rng(0)
    _, infos = envs.reset()
    decisions, choosing, began, start = 0, 0.0, time.perf_counter(), time.process_time() + served_secs(envs)
    while time.perf_counter() - began < SECONDS:
        for _ in range(50):
            before = time.process_time()
            mask = infos["action_mask"]
            actions = (random.random(mask.shape, dtype=np.float32) * mask).argmax(1)
            choosing += time.process_time() - before
            *_, infos = envs.step(actions)
            decisions += envs.num_envs
    return decisions / (time.process_time() + served_secs(envs) - start - choosing)


def single(env):
    """Decisions a CPU second of one environment."""
    random = np.random.default_rng(0)
    _, info = env.reset()
    decisions, choosing, began, start = 0, 0.0, time.perf_counter(), time.process_time()
    while time.perf_counter() - began < SECONDS:
        for _ in range(100):
            before = time.process_time()
            allowed = np.flatnonzero(info["action_mask"])
            action = allowed[random.integers(len(allowed))]
            choosing += time.process_time() - before
            _, _, terminated, truncated, info = env.step(action)
            decisions += 1
            if terminated or truncated:
                _, info = env.reset()
    return decisions / (time.process_time() - start - choosing)


def main():
    print(f"goodput_gym {goodput_gym.__version__}, numpy {np.__version__}, Python {sys.version.split()[0]}")
    print("| client | environments | decisions a CPU second |\n|---|---|---|")
    rows = [("ClusterEnv", 1, lambda: single(goodput_gym.ClusterEnv("quickstart", seed=1)))]
    for count in (1, 8, 32, 256):
        made = {
            "pipe": lambda count=count: goodput_pipe.ClusterVectorEnv(QUICKSTART, count, 1, program=PROGRAM),
            "ClusterVectorEnv": lambda count=count: goodput_gym.ClusterVectorEnv("quickstart", count, seed=1),
            "ClusterVectorEnv, copy=False": lambda count=count: goodput_gym.ClusterVectorEnv(
                "quickstart", count, seed=1, copy=False
            ),
        }
        rows += [(name, count, lambda make=make: vector(make())) for name, make in made.items()]
    for name, count, measure in rows:
        print(f"| {name} | {count} | {measure():,.0f} |", flush=True)


if __name__ == "__main__":
    main()
