"""Random weights whose logits spread by a few units and whose attention is far from uniform, so that
an error in any part of a model changes the logits."""

import re
import zlib

import torch


def fill(model, name):
    """Fills `model`'s parameters. The same `name` gives the same values."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    gemma = model.config.model_type.startswith("gemma")
    for parameter_name, parameter in model.named_parameters():
        normal = torch.randn(parameter.shape, generator=generator)
        parameter.data = centre(parameter_name, gemma) + normal * deviation(
            parameter_name, parameter, model.config
        )
    model.tie_weights()


def is_norm(name):
    return re.search(r"(norm|\.ln_\w+)\.weight$|layernorm\.weight$", name) is not None


def centre(name, gemma):
    # Gemma's code adds 1 to its norms.
    return 1.0 if is_norm(name) and not gemma else 0.0


def deviation(name, parameter, config):
    if parameter.ndim == 1:
        return 0.2
    fan_in = parameter.shape[-1]
    if config.model_type == "gpt2" and re.search(r"c_(attn|fc|proj)", name):
        fan_in = parameter.shape[0]
    if re.search(r"embed_tokens|wte", name):
        return 0.3
    if "wpe" in name:
        return 0.2
    # Makes attention scores spread by a few units and routers prefer some experts.
    sharp = re.search(r"q_proj|k_proj|qkv_proj|c_attn|(mlp|moe)\.gate\.weight", name)
    return (1.6 if sharp else 2.0 if "lm_head" in name else 1.2) * fan_in**-0.5
