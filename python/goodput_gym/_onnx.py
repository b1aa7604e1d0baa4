"""Nets of any shape as ONNX graphs, by the exporter of torch."""

import importlib.util
import inspect
import io
from typing import Any


def graph(net: Any, width: int) -> bytes | None:
    """The ONNX graph of a net that scores actions by an observation of `width` numbers; `None` for what is no module of
    torch with a forward pass, such as a state dict.

    The exporter of torch 2 needs the package `onnxscript`; where it is missing, an ImportError says so.
    """
    scorer = _scorer(net)
    if scorer is None:
        return None
    # The net itself is exported, because not every net can be copied; it is as it was in the end.
    modes = [(module, module.training) for module in scorer.modules()]
    try:
        return _exported(scorer.eval(), width)
    finally:
        for module, training in modes:
            module.training = training


def _exported(scorer: Any, width: int) -> bytes:
    import torch

    device = next((parameter.device for parameter in scorer.parameters()), None)
    observation = torch.zeros(1, width, device=device)
    names = {"input_names": ["observation"], "output_names": ["scores"]}
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        if importlib.util.find_spec("onnxscript") is None:
            raise ImportError("torch writes an ONNX graph with the package onnxscript: pip install onnxscript")
        program = torch.onnx.export(scorer, (observation,), dynamo=True, verbose=False, **names)
        # The exporter notes at each node which lines of which files made it; they are nobody else's business.
        for node in program.model.graph.all_nodes():
            node.metadata_props.clear()
        content: bytes = program.model_proto.SerializeToString()
        return content
    file = io.BytesIO()
    torch.onnx.export(scorer, (observation,), file, **names)
    return file.getvalue()


def _scorer(net: Any) -> Any:
    """A module from an observation `(1, width)` to scores `(1, actions)`."""
    if not hasattr(net, "named_modules"):
        return None
    if hasattr(net, "lstm_actor"):
        raise ValueError("the policy remembers (lstm_actor): a bundle decides by the present observation alone")
    from torch import nn

    class First(nn.Module):
        """The first of the outputs of a net: its scores, and not the value of a critic."""

        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, observation: Any) -> Any:
            scores = self.net(observation)
            return scores[0] if isinstance(scores, (tuple, list)) else scores

    class Actor(nn.Module):
        """The actor of an `ActorCriticPolicy` of Stable-Baselines3."""

        def __init__(self) -> None:
            super().__init__()
            self.policy = net

        def forward(self, observation: Any) -> Any:
            features = self.policy.extract_features(observation)
            features = features[0] if isinstance(features, tuple) else features
            return self.policy.action_net(self.policy.mlp_extractor.forward_actor(features))

    if hasattr(net, "action_net") and hasattr(net, "mlp_extractor"):
        return Actor()
    # A learner of action values, such as the DQN of Stable-Baselines3, takes the action of the greatest value.
    if hasattr(net, "q_net"):
        return net.q_net
    has_forward = type(net).forward is not nn.Module.forward
    return First() if has_forward else getattr(net, "actor", None)
