"""Environments and nets for RLlib. Needs the extra `rllib`: `pip install 'goodput-gym[rllib]'`, and PyTorch.

    from ray.rllib.algorithms.ppo import PPOConfig
    from goodput_gym import rllib

    config = (
        PPOConfig()
        .environment(rllib.RunnerEnv, env_config={"config": "quickstart"})
        .env_runners(num_env_runners=2, num_envs_per_env_runner=16, gym_env_vectorize_mode="vector_entry_point")
        .rl_module(rl_module_spec=rllib.masked_net(hidden=(64, 64)))
        .debugging(seed=1)
    )
    algorithm = config.build_algo()
    algorithm.train()
    goodput_gym.export(rllib.state(algorithm), goodput_gym.ClusterEnv("quickstart"), "policy.bundle")
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule

from goodput_gym._vector import ClusterVectorEnv

__all__ = ["RunnerEnv", "masked_net", "state"]

_FIXED = {
    "seed": "give the seed to the algorithm: config.debugging(seed=...)",
    "first": "RLlib seeds every runner by itself",
    "autoreset_mode": "RLlib steps under NEXT_STEP",
    "observation": "RLlib finds the mask in the observation",
    "copy": "RLlib keeps what it is given",
}
"""Options that this module sets, with the reason."""


class RunnerEnv(ClusterVectorEnv):
    """The environments of one environment runner of RLlib, which step together.

    An observation is a dict of `observations`, float32 of shape `(num_envs, features)`, and `action_mask`, float32 of
    shape `(num_envs, actions)`, 1 where an action is allowed: the form that RLlib's masking of actions takes. The other
    conventions are those of `ClusterVectorEnv` under NEXT_STEP.

    RLlib makes it, with `env_config` as `context`: the arguments of `ClusterVectorEnv`. `seed`, `first`,
    `autoreset_mode`, `observation` and `copy` are set here.

    **Seeds.** RLlib gives the environments of a vector entry point no number of their runner, so that a seed in
    `env_config` would be that of every runner. Runner `w` of an algorithm with `debugging(seed=s)` resets with the
    seed `s + w`, which is a master seed here: streams of other master seeds never meet. Without a seed, every runner
    draws its own. Gymnasium's own vectors would seed environment `i` with `s + w + i`, which is also the seed of
    environment `i - 1` of the next runner; so `gym_env_vectorize_mode` must be `"vector_entry_point"`.
    """

    def __init__(self, context: dict[str, Any]) -> None:
        options = dict(context)
        num_envs = options.pop("num_envs", None)
        if num_envs is None:
            raise ValueError(
                'set config.env_runners(gym_env_vectorize_mode="vector_entry_point"): with gymnasium\'s own vectors, '
                "the runners of RLlib would share seeds"
            )
        for name, reason in _FIXED.items():
            if name in options:
                raise ValueError(f"env_config: {name!r} is set by goodput_gym.rllib; {reason}")
        config = options.pop("config", "quickstart")
        super().__init__(config, num_envs, autoreset_mode=AutoresetMode.NEXT_STEP, observation="masked", **options)


def masked_net(hidden: Sequence[int] = (64, 64)) -> RLModuleSpec:
    """Actor and critic for PPO, apart from each other, with ReLU after each hidden layer and masked actions.

    `hidden` has the widths of the hidden layers. `state` and `goodput_gym.export` make a policy bundle of it.
    """
    layers = {"fcnet_hiddens": list(hidden), "fcnet_activation": "relu", "head_fcnet_hiddens": []}
    return RLModuleSpec(
        module_class=ActionMaskingTorchRLModule, model_config={**layers, "vf_share_layers": False}
    )


def state(algorithm: Any, module: str = "default_policy") -> dict[str, NDArray[np.float32]]:
    """The weights of a `masked_net` of an algorithm, for `goodput_gym.export`: matrices `(outputs, inputs)` and biases
    of `actor` and `critic`, numbered as two `nn.Sequential` have them."""
    settings = algorithm.get_module(module).model_config
    given = {name: _setting(settings, name) for name in ("fcnet_activation", "vf_share_layers", "head_fcnet_hiddens")}
    if given["fcnet_activation"] != "relu" or given["vf_share_layers"] or given["head_fcnet_hiddens"]:
        raise ValueError(f"the module has {given}; a bundle takes the net of goodput_gym.rllib.masked_net")
    weights = algorithm.learner_group.get_weights()[module]
    found: dict[str, NDArray[np.float32]] = {}
    for ours, encoder, head in (("actor", "actor_encoder", "pi"), ("critic", "critic_encoder", "vf")):
        hidden = [name for name in weights if name.startswith(f"encoder.{encoder}.net.mlp.")]
        depth = len([name for name in hidden if name.endswith(".weight")])
        for part in ("weight", "bias"):
            # A ReLU stands between two layers, so that layers have even numbers.
            for at in range(depth):
                found[f"{ours}.{2 * at}.{part}"] = weights[f"encoder.{encoder}.net.mlp.{2 * at}.{part}"]
            found[f"{ours}.{2 * depth}.{part}"] = weights[f"{head}.net.mlp.0.{part}"]
    return {name: np.asarray(value, np.float32) for name, value in found.items()}


def _setting(settings: Any, name: str) -> Any:
    """A setting of a module, which RLlib keeps as a dict or as a dataclass."""
    return settings.get(name) if isinstance(settings, dict) else getattr(settings, name)
