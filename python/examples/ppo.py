"""PPO with masked actions in one file, in the style of CleanRL (Huang et al., JMLR 23(274), 2022), with PyTorch alone.

    python python/examples/ppo.py --decisions 500000 --bundle policy.bundle
    goodput eval configs/experiment/quickstart.toml --set environment.slots=8 \\
        --set workload.synthetic.diurnal.jobs=40 --policies fifo,tiresias,policy.bundle

It differs from CleanRL's `ppo.py` in five points. Forbidden actions have the logit of minus infinity (Huang and
Ontanon, FLAIRS 2022). The discount between two decisions is `infos["discount"]`, which depends on the time that passes,
because the environment is a semi-Markov decision process. The trace of the advantage decays by time as well. A round
ends after `round_actions` actions, because the actions of a round take no time, and an untrained net would fill it with
them. And actor and critic have ReLU, so that the net becomes a policy bundle.
"""

import argparse
import time
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import goodput_gym


@dataclass
class Args:
    config: str = "quickstart"
    """an experiment that ships, or a file"""
    jobs: int = 40
    """jobs of an episode"""
    slots: int = 8
    """job slots of an observation; other jobs wait behind them"""
    decisions: int = 500_000
    """decisions to learn from"""
    num_envs: int = 32
    """environments that step together"""
    num_steps: int = 128
    """decisions of each environment between two updates"""
    half_life_secs: float = 7200.0
    """simulated seconds after which the future counts half"""
    learning_rate: float = 1e-3
    """step size of Adam at the beginning; it falls to 0"""
    trace_secs: float = 300.0
    """simulated seconds after which an error counts half in the generalised advantage estimation"""
    round_actions: int = 8
    """actions after which a round must end"""
    update_epochs: int = 4
    """passes over the decisions of an update"""
    minibatches: int = 8
    """parts of a pass"""
    clip: float = 0.2
    """bound of the change of a probability"""
    entropy: float = 0.01
    """weight of the entropy"""
    width: int = 64
    """units of the two hidden layers"""
    episodes: int = 20
    """held-out episodes to compare on"""
    seed: int = 1
    """master seed"""
    bundle: str = ""
    """file to write the policy to"""


def args() -> Args:
    parser = argparse.ArgumentParser(description="PPO on goodput_gym")
    for field in fields(Args):
        flag = "--" + field.name.replace("_", "-")
        parser.add_argument(flag, type=type(field.default), default=field.default, metavar=field.type)
    return Args(**vars(parser.parse_args()))


def changed(args) -> dict:
    """Values of the experiment that differ from its file."""
    return {"environment.slots": args.slots, "workload.synthetic.diurnal.jobs": args.jobs}


class Agent(nn.ModuleDict):
    """Actor and critic, by the names that `goodput_gym.export` knows."""

    def __init__(self, envs, width):
        dim, actions = len(envs.features), len(envs.action_names)

        def net(outputs, gain):
            layers = [nn.Linear(dim, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs)]
            for at, layer in enumerate(layers[::2]):
                nn.init.orthogonal_(layer.weight, gain if at == 2 else 2**0.5)
                nn.init.zeros_(layer.bias)
            return nn.Sequential(*layers)

        super().__init__({"actor": net(actions, 0.01), "critic": net(1, 1.0)})

    def choices(self, observations, masks):
        return Categorical(logits=self["actor"](observations).masked_fill(masks == 0, -torch.inf))

    def worth(self, observations):
        return self["critic"](observations).squeeze(-1)


def mean_jct(args, chooser):
    """Mean job completion time in seconds over held-out episodes. `chooser` takes an environment and gives a function
    from observation and mask to an action."""
    env = goodput_gym.ClusterEnv(args.config, sets=changed(args), split="held-out")
    means, choose = [], chooser(env)
    for _ in range(args.episodes):
        (observation, info), over = env.reset(), False
        while not over:
            observation, _, terminated, truncated, info = env.step(choose(observation, info["action_mask"]))
            over = terminated or truncated
        means.append(info["jct_mean_secs"])
    return float(np.mean(means))


def main(args):
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    envs = goodput_gym.ClusterVectorEnv(
        args.config,
        args.num_envs,
        sets=changed(args),
        seed=args.seed,
        half_life_secs=args.half_life_secs,
        round_actions=args.round_actions,
        threads=2,
    )
    agent = Agent(envs, args.width)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    shape = (args.num_steps, args.num_envs)
    observations = torch.zeros(*shape, len(envs.features))
    masks = torch.zeros(*shape, len(envs.action_names), dtype=torch.int8)
    actions = torch.zeros(shape, dtype=torch.long)
    logprobs, rewards, values, following, gammas, traces, going = (torch.zeros(shape) for _ in range(7))

    now, infos = envs.reset()
    updates, began = max(1, args.decisions // (args.num_steps * args.num_envs)), time.perf_counter()
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = args.learning_rate * (1.0 - update / updates)
        ended = []
        for step in range(args.num_steps):
            observations[step], masks[step] = torch.from_numpy(now), torch.from_numpy(infos["action_mask"])
            with torch.no_grad():
                policy = agent.choices(observations[step], masks[step])
                actions[step] = policy.sample()
                logprobs[step], values[step] = policy.log_prob(actions[step]), agent.worth(observations[step])
            now, reward, terminated, truncated, infos = envs.step(actions[step].numpy())
            over = terminated | truncated
            rewards[step], gammas[step] = torch.from_numpy(reward), torch.from_numpy(infos["discount"])
            traces[step] = torch.from_numpy(0.5 ** (infos["elapsed_secs"] / args.trace_secs))
            going[step] = torch.from_numpy(~over).float()
            # An episode that the horizon cut off goes on, so that its last state has a value.
            last = now.copy()
            for env in np.flatnonzero(over):
                last[env] = infos["final_obs"][env]
                ended.append(infos["jct_mean_secs"][env])
            with torch.no_grad():
                following[step] = agent.worth(torch.from_numpy(last)) * torch.from_numpy(~terminated)

        advantages, carried = torch.zeros(shape), torch.zeros(args.num_envs)
        for step in reversed(range(args.num_steps)):
            delta = rewards[step] + gammas[step] * following[step] - values[step]
            carried = delta + gammas[step] * traces[step] * going[step] * carried
            advantages[step] = carried
        returns = advantages + values

        flat = [part.flatten(0, 1) for part in (observations, masks, actions, logprobs, advantages, returns)]
        count = args.num_steps * args.num_envs
        for _ in range(args.update_epochs):
            for rows in torch.randperm(count).chunk(args.minibatches):
                seen, mask, taken, old, advantage, target = (part[rows] for part in flat)
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                policy = agent.choices(seen, mask)
                ratio = (policy.log_prob(taken) - old).exp()
                clipped = ratio.clamp(1.0 - args.clip, 1.0 + args.clip)
                policy_loss = -torch.min(ratio * advantage, clipped * advantage).mean()
                value_loss = 0.5 * (agent.worth(seen) - target).square().mean() / (returns.var() + 1e-8)
                optimizer.zero_grad()
                (policy_loss + 0.5 * value_loss - args.entropy * policy.entropy().mean()).backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        done, jct = (update + 1) * count, np.mean(ended) if ended else float("nan")
        rate = done / (time.perf_counter() - began)
        print(f"{done:>9} decisions  {rate:>7.0f} a second  mean completion time {jct:.0f} s", flush=True)

    def learned(observation, mask):
        with torch.no_grad():
            return int(agent.choices(torch.from_numpy(observation), torch.from_numpy(mask)).logits.argmax())

    def published(env, name):
        expert = goodput_gym.policies[name](env)
        return lambda observation, mask: int(expert.actions()[0])

    random = np.random.default_rng(args.seed)
    print(f"held out, mean completion time over {args.episodes} episodes:")
    print(f"  learned  {mean_jct(args, lambda env: learned):.0f} s")
    print(f"  chance   {mean_jct(args, lambda env: lambda _, mask: int(random.choice(np.flatnonzero(mask)))):.0f} s")
    for name in ("fifo", "tiresias"):
        print(f"  {name:8} {mean_jct(args, lambda env, name=name: published(env, name)):.0f} s")
    if args.bundle:
        goodput_gym.export(agent, envs, args.bundle, seed=args.seed, steps=updates * args.num_steps * args.num_envs)
        print(f"wrote {args.bundle}")


if __name__ == "__main__":
    main(args())
