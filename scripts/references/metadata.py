"""Hyperparameters of a Hugging Face config as llama.cpp's converter writes them, and the tensors of
rope factors that it computes from them."""

import math

import gguf
import numpy as np


def add_to_gguf(writer, architecture, config):
    """Writes the architecture's keys."""
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_head_count(config.num_attention_heads)
    if architecture == "gpt2":
        writer.add_feed_forward_length(4 * config.hidden_size)
        writer.add_layer_norm_eps(config.layer_norm_epsilon)
        return
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count_kv(config.num_key_value_heads)
    if architecture == "starcoder2":
        writer.add_layer_norm_eps(config.norm_epsilon)
    else:
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    # Files of Gemma 1 and 2 do not state the base, which is llama.cpp's default.
    if architecture not in ("gemma", "gemma2"):
        writer.add_rope_freq_base(rope_base(architecture, config))
    if architecture == "phi3":
        add_phi3(writer, config)
    else:
        if architecture != "hunyuan-dense":
            add_rope_scaling(writer, getattr(config, "rope_scaling", None))
        if head_dim := getattr(config, "head_dim", None):
            writer.add_key_length(head_dim)
            writer.add_value_length(head_dim)
    # Files of the architecture llama, including Mistral's, do not state a window.
    if architecture in ("gemma2", "gemma3", "exaone4"):
        writer.add_sliding_window(config.sliding_window)
    if architecture == "exaone4":
        is_local = [kind == "sliding_attention" for kind in config.layer_types]
        writer.add_sliding_window_pattern(is_local)
    if architecture == "glm4":
        rotated = int(config.head_dim * config.partial_rotary_factor)
        writer.add_rope_dimension_count(rotated)
    if architecture == "gemma3":
        writer.add_rope_freq_base_swa(config.rope_local_base_freq)
    if architecture == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if architecture in ("llama", "granite", "smollm3"):
        heads = config.num_attention_heads
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
        writer.add_vocab_size(config.vocab_size)
        writer.add_rope_dimension_count(head_dim)
    if architecture == "granite":
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_logit_scale(config.logits_scaling)
    experts = getattr(config, "num_experts", getattr(config, "num_local_experts", None))
    if experts:
        writer.add_expert_count(experts)
        writer.add_expert_used_count(config.num_experts_per_tok)
    if experts_width := getattr(config, "moe_intermediate_size", None):
        writer.add_expert_feed_forward_length(experts_width)


def rope_base(architecture, config):
    """The base of the frequencies. Files of Hunyuan hold the one that follows from alpha."""
    if architecture == "hunyuan-dense" and config.rope_scaling:
        grown = config.rope_scaling["alpha"] ** (config.head_dim / (config.head_dim - 2))
        return config.rope_theta * grown
    return config.rope_theta


def add_rope_scaling(writer, scaling):
    """Linear and YaRN. Llama 3's scaling is only a tensor."""
    kind = (scaling or {}).get("rope_type")
    if kind == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(scaling["factor"])
    elif kind == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(scaling["factor"])
        writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
    elif kind not in (None, "default", "llama3"):
        raise ValueError(f"rope scaling {kind}")


def add_phi3(writer, config):
    """Phi-3's keys. llama.cpp reads the window but does not apply it; transformers does."""
    head_dim = config.hidden_size // config.num_attention_heads
    writer.add_rope_dimension_count(int(config.partial_rotary_factor * head_dim))
    writer.add_rope_scaling_orig_ctx_len(config.original_max_position_embeddings)
    writer.add_sliding_window(config.sliding_window or 0)
    if config.rope_scaling:
        scale = config.max_position_embeddings / config.original_max_position_embeddings
        grown = 1 + math.log(scale) / math.log(config.original_max_position_embeddings)
        writer.add_rope_scaling_attn_factors(math.sqrt(grown))


def rope_tensors(config):
    """Divisors of the rotary frequencies by name of tensor, for Llama 3's scaling and longrope."""
    scaling = getattr(config, "rope_scaling", None) or {}
    kind = scaling.get("rope_type", scaling.get("type"))
    if kind == "longrope":
        return {
            "rope_factors_long.weight": np.array(scaling["long_factor"], np.float32),
            "rope_factors_short.weight": np.array(scaling["short_factor"], np.float32),
        }
    if kind == "llama3":
        return {"rope_freqs.weight": llama3_factors(config, scaling)}
    return {}


def llama3_factors(config, scaling):
    """1 for wavelengths well inside the original context, `factor` for those beyond it, and an
    interpolation of the frequencies in between."""
    dim, factor = config.head_dim, scaling["factor"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    factors = []
    for i in range(0, dim, 2):
        wavelength = 2 * math.pi * config.rope_theta ** (i / dim)
        turns = scaling["original_max_position_embeddings"] / wavelength
        kept = min(max((turns - low) / (high - low), 0.0), 1.0)
        factors.append(1 / ((1 - kept) / factor + kept))
    return np.array(factors, np.float32)
