"""Makes the models in tests/parity/converted: each as a Hugging Face folder and as the GGUF file that llama.cpp's converter makes
of it, with the logits that transformers computes in float32 from the folder's values.

    VENV/bin/pip install -r scripts/references/requirements-folders.txt
    VENV/bin/python scripts/references/converted.py [NAME ...]

What converters do to names, shapes and values is written here once more, apart from the code that is tested. Files have no
tokenizer.
"""

import json
import re
import shutil
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import torch
from safetensors.torch import save_file
from transformers import (
    BitNetConfig,
    DeepseekV2Config,
    DeepseekV3Config,
    FalconH1Config,
    Llama4TextConfig,
    LlamaConfig,
    Qwen3Config,
    Qwen3MoeConfig,
    Qwen3NextConfig,
    YoutuConfig,
)

from folders import DELTA, PROMPT_TOKENS, built, split_experts, sizes as sizes_of_folders

FOLDER = Path(__file__).parents[2] / "tests/parity/converted"
LLAMA = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}  # fmt: skip


def sizes(**changes):
    return sizes_of_folders(**{"vocab_size": 160, **changes})


def gguf_name(name, names):
    """The name of a checkpoint's tensor in the file."""
    layer = re.match(r"model\.layers\.(\d+)\.(.*)", name)
    within = layer[2] if layer else name
    module, dot, suffix = within.rpartition(".")
    for checkpoint, file in {**LLAMA, **names}.items():
        if within == checkpoint:
            within = file
        elif module == checkpoint:
            within = f"{file}.{suffix}"
        else:
            continue
        return f"blk.{layer[1]}.{within}" if layer else within
    raise ValueError(f"no name for {name}")


def llama_keys(config):
    return {
        "block_count": config.num_hidden_layers, "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size, "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads, "attention.head_count_kv": config.num_key_value_heads,
        "attention.layer_norm_rms_epsilon": config.rms_norm_eps, "rope.freq_base": rope_base(config),
    }  # fmt: skip


def rope_base(config):
    return float(config.rope_parameters["rope_theta"])


def pairs(array, heads):
    """Rows whose rotated pairs are adjacent."""
    split = array.reshape(heads, 2, -1, *array.shape[1:])
    return np.ascontiguousarray(split.swapaxes(1, 2)).reshape(array.shape)


def write(path, architecture, keys, tensors, ternary):
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in keys.items():
        add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, list: writer.add_array,
               str: writer.add_string}
        add[type(value)](f"{architecture}.{key}", value)
    for name, array in tensors.items():
        if array.dtype == np.uint8:
            writer.add_tensor(name, array, raw_dtype=gguf.GGMLQuantizationType.NVFP4)
            continue
        exact = array.ndim == 1 or re.search(r"norm|conv1d|ssm_[ad]$|gate_inp\.|bias", name)
        if re.search(ternary, name):
            kind = gguf.GGMLQuantizationType.TQ2_0
            writer.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)
            continue
        writer.add_tensor(name, array.astype(np.float32 if exact else np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    path.chmod(0o644)


# Falcon-H1: the factors of a config are in the weights of a file.
FALCON = FalconH1Config(
    **sizes(intermediate_size=36, num_attention_heads=2, num_key_value_heads=1), head_dim=24, mamba_d_ssm=96,
    mamba_n_heads=3, mamba_d_head=32, mamba_d_state=48, mamba_n_groups=1, mamba_d_conv=4, mamba_expand=2,
    mamba_rms_norm=False, mamba_norm_before_gate=False, embedding_multiplier=5.6, lm_head_multiplier=0.4,
    attention_in_multiplier=0.9, attention_out_multiplier=0.7, key_multiplier=0.6, ssm_in_multiplier=1.3,
    ssm_out_multiplier=0.5, mlp_multipliers=[0.8, 0.6], ssm_multipliers=[0.9, 0.8, 1.2, 0.7, 1.1],
    rope_theta=1e6,
)  # fmt: skip
FALCON_GROUPS = FalconH1Config(**{
    **FALCON.to_dict(), "mamba_rms_norm": True, "mamba_n_heads": 4, "mamba_d_ssm": 128, "mamba_n_groups": 2,
    "num_hidden_layers": 1, "tie_word_embeddings": True,
})  # fmt: skip
FALCON_NAMES = {
    "model.final_layernorm": "output_norm", "pre_ff_layernorm": "ffn_norm", "feed_forward.gate_proj": "ffn_gate",
    "feed_forward.up_proj": "ffn_up", "feed_forward.down_proj": "ffn_down", "mamba.in_proj": "ssm_in",
    "mamba.conv1d": "ssm_conv1d", "mamba.norm": "ssm_norm", "mamba.out_proj": "ssm_out", "mamba.A_log": "ssm_a",
    "mamba.D": "ssm_d", "mamba.dt_bias": "ssm_dt.bias",
}  # fmt: skip


def falcon_keys(config):
    return {
        **llama_keys(config), "attention.key_length": config.head_dim, "attention.value_length": config.head_dim,
        "ssm.conv_kernel": config.mamba_d_conv, "ssm.inner_size": config.mamba_d_ssm,
        "ssm.state_size": config.mamba_d_state, "ssm.time_step_rank": config.mamba_n_heads,
        "ssm.group_count": config.mamba_n_groups,
    }  # fmt: skip


def falcon_tensors(config, tensors):
    group = config.mamba_n_groups * config.mamba_d_state
    lengths = [config.mamba_d_ssm, config.mamba_d_ssm, group, group, config.mamba_n_heads]
    inputs = np.repeat(config.ssm_multipliers, lengths) * config.ssm_in_multiplier
    factors = {
        "attn_q": config.attention_in_multiplier, "attn_v": config.attention_in_multiplier,
        "attn_k": config.attention_in_multiplier * config.key_multiplier,
        "attn_output": config.attention_out_multiplier, "ffn_gate": config.mlp_multipliers[0],
        "ffn_down": config.mlp_multipliers[1], "ssm_out": config.ssm_out_multiplier, "ssm_in": inputs[:, None],
        "token_embd": config.embedding_multiplier, "output": config.lm_head_multiplier,
    }  # fmt: skip
    if config.tie_word_embeddings:
        # The file's embedding and output are one matrix. Only equal factors fit.
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
    made = {}
    for name, array in tensors.items():
        name = gguf_name(name, FALCON_NAMES)
        part = name.removesuffix(".weight").split(".")[-1]
        if name.endswith("ssm_a"):
            array = -np.exp(array)
        if name.endswith(("ssm_a", "ssm_d")):
            array = array.reshape(-1, 1)
        if name.endswith("conv1d.weight"):
            array = array.squeeze(1)
        if part == "ssm_norm":
            array = array.reshape(config.mamba_n_groups, -1)
        made[name] = array * factors.get(part, 1) if name.endswith(".weight") else array
    return made


# Nanbeige: the layers of a Llama, three times.
NANBEIGE = LlamaConfig(**sizes(num_hidden_layers=2), head_dim=16, rope_theta=1e6)
LOOPS = 3


class Norm(torch.nn.Module):
    """The norm between passes in the place of a layer."""

    def __init__(self, norm):
        super().__init__()
        self.norm = norm

    def forward(self, hidden, **_):
        return self.norm(hidden)


def nanbeige_model(model, with_norm=True):
    between = [Norm(model.model.norm)] if with_norm else []
    once = list(model.model.layers)
    model.model.layers = torch.nn.ModuleList(once + (between + once) * (LOOPS - 1))
    model.config.num_hidden_layers = len(model.model.layers)
    return model


def nanbeige_keys(config):
    return {**llama_keys(config), "rope.dimension_count": config.head_dim, "num_loops": LOOPS,
            "skip_loop_final_norm": False}  # fmt: skip


def nanbeige_tensors(config, tensors):
    made = {gguf_name(name, {}): array for name, array in tensors.items()}
    for name, array in made.items():
        if re.search(r"attn_[qk]\.weight", name):
            made[name] = pairs(array, config.num_attention_heads if "_q" in name else config.num_key_value_heads)
    return made


# Qwen3-Next: inputs of delta nets are joined by key heads in the folder, and partly in the file.
NEXT = Qwen3NextConfig(
    **sizes(intermediate_size=48), **DELTA, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
    shared_expert_intermediate_size=32,
)  # fmt: skip
NEXT_NAMES = {
    "post_attention_layernorm": "post_attention_norm", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "linear_attn.in_proj_ba": "ssm_ba", "linear_attn.conv1d": "ssm_conv1d",
    "linear_attn.norm": "ssm_norm", "linear_attn.out_proj": "ssm_out", "linear_attn.A_log": "ssm_a",
    "linear_attn.dt_bias": "ssm_dt.bias", "mlp.gate": "ffn_gate_inp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp",
}  # fmt: skip


def key_heads(config):
    """Rows of a key head in the joined matrix: query, key, values, gates."""
    values = config.linear_num_value_heads // config.linear_num_key_heads * config.linear_value_head_dim
    return [config.linear_key_head_dim] * 2 + [values] * 2


def next_weights(config, tensors):
    """Keys like queries: the norm of what a state gives the first tokens would amplify roundings."""
    keys = config.linear_num_key_heads * config.linear_key_head_dim
    for name, tensor in tensors.items():
        if name.endswith("in_proj_qkvz.weight"):
            heads = tensor.reshape(config.linear_num_key_heads, sum(key_heads(config)), -1)
            length = config.linear_key_head_dim
            heads[:, length : 2 * length] = heads[:, :length] + 0.3 * heads[:, length : 2 * length]
        elif name.endswith("linear_attn.conv1d.weight"):
            tensor[keys : 2 * keys] = tensor[:keys] + 0.3 * tensor[keys : 2 * keys]


def next_folder(config, tensors):
    return split_experts(tensors, "gate_up_proj", "down_proj", ["gate_proj", "up_proj", "down_proj"])


def next_keys(config):
    return {
        **llama_keys(config), "attention.key_length": config.head_dim, "attention.value_length": config.head_dim,
        "rope.dimension_count": config.head_dim // 4, "expert_count": config.num_experts,
        "expert_used_count": config.num_experts_per_tok, "expert_feed_forward_length": config.moe_intermediate_size,
        "expert_shared_feed_forward_length": config.shared_expert_intermediate_size,
        "ssm.conv_kernel": config.linear_conv_kernel_dim, "ssm.state_size": config.linear_key_head_dim,
        "ssm.group_count": config.linear_num_key_heads, "ssm.time_step_rank": config.linear_num_value_heads,
        "ssm.inner_size": config.linear_value_head_dim * config.linear_num_value_heads,
        "attention.recurrent_layers": [kind == "linear_attention" for kind in config.layer_types],
        "full_attention_interval": 4,
    }  # fmt: skip


def next_tensors(config, tensors):
    made = {}
    for name, array in tensors.items():
        if expert := re.match(r"model\.layers\.(\d+)\.mlp\.experts\.\d+\.(\w+)_proj", name):
            made.setdefault(f"blk.{expert[1]}.ffn_{expert[2]}_exps.weight", []).append(array)
            continue
        if joined := re.match(r"model\.layers\.(\d+)\.linear_attn\.in_proj_qkvz", name):
            heads = array.reshape(config.linear_num_key_heads, sum(key_heads(config)), -1)
            parts = np.split(heads, np.cumsum(key_heads(config))[:-1], axis=1)
            parts = [part.reshape(-1, array.shape[1]) for part in parts]
            made[f"blk.{joined[1]}.attn_qkv.weight"] = np.concatenate(parts[:3])
            made[f"blk.{joined[1]}.attn_gate.weight"] = parts[3]
            continue
        if name.endswith("norm.weight") and not name.endswith("linear_attn.norm.weight"):
            array = array + 1
        file = gguf_name(name, NEXT_NAMES)
        array = -np.exp(array) if file.endswith("ssm_a") else array
        array = array.squeeze(1) if file.endswith("conv1d.weight") else array
        made[file] = array.reshape(-1) if file.endswith("ffn_gate_inp_shexp.weight") else array
    return {name: np.stack(it) if isinstance(it, list) else it for name, it in made.items()}


# BitNet: three levels, packed in the folder.
BITNET = BitNetConfig(
    **sizes(hidden_size=256, intermediate_size=256, num_hidden_layers=1, num_key_value_heads=1), rope_theta=1e4,
    tie_word_embeddings=True,
)  # fmt: skip
BITNET_NAMES = {"self_attn.attn_sub_norm": "attn_sub_norm", "mlp.ffn_sub_norm": "ffn_sub_norm"}


def is_ternary(name):
    return name.endswith("_proj.weight")


def bitnet_weights(config, tensors):
    for name, tensor in tensors.items():
        if is_ternary(name):
            scale = tensor.abs().mean().bfloat16().float()
            tensor.copy_((tensor / scale).round().clamp(-1, 1) * scale)


def bitnet_folder(config, tensors):
    made = {}
    for name, tensor in tensors.items():
        if is_ternary(name):
            scale = tensor.abs().max()
            quarters = ((tensor / scale).round() + 1).to(torch.uint8).chunk(4)
            made[name] = sum(quarter << (2 * i) for i, quarter in enumerate(quarters)).to(torch.uint8)
            made[name + "_scale"] = scale.reshape(1)
        else:
            made[name] = tensor
    return made


def bitnet_config(text):
    return {**text, "quantization_config": {"quant_method": "bitnet", "linear_class": "autobitlinear",
                                            "quantization_mode": "offline"}}  # fmt: skip


def bitnet_tensors(config, tensors):
    return {gguf_name(name, BITNET_NAMES): array for name, array in tensors.items()}


# DeepSeek V2: latents, experts in groups behind a dense layer, YaRN with its factor of scores. Files have keys and values apart.
DEEPSEEK = DeepseekV2Config(
    **sizes(intermediate_size=48, num_key_value_heads=4), kv_lora_rank=40, q_lora_rank=None, qk_rope_head_dim=8,
    qk_nope_head_dim=12, v_head_dim=14, first_k_dense_replace=1, n_routed_experts=6, num_experts_per_tok=2,
    n_shared_experts=2, moe_intermediate_size=16, routed_scaling_factor=1.5, n_group=3, topk_group=1,
    topk_method="group_limited_greedy",
    rope_parameters={"rope_type": "yarn", "type": "yarn", "rope_theta": 1e4, "factor": 4.0,
                     "original_max_position_embeddings": 32, "beta_fast": 32, "beta_slow": 1, "mscale": 0.707,
                     "mscale_all_dim": 0.707},
)  # fmt: skip
# DeepSeek V3: sigmoids with a bias, whose groups are as good as their two best experts.
DEEPSEEK_V3 = DeepseekV3Config(
    **sizes(intermediate_size=48, num_key_value_heads=4, num_hidden_layers=1), kv_lora_rank=40, q_lora_rank=None,
    qk_rope_head_dim=8, qk_nope_head_dim=12, v_head_dim=14, first_k_dense_replace=0, n_routed_experts=9,
    num_experts_per_tok=3, n_shared_experts=1, moe_intermediate_size=8, routed_scaling_factor=2.5, n_group=3,
    topk_group=2, norm_topk_prob=True, rope_theta=1e4,
)  # fmt: skip
# Youtu-LLM: queries have a latent, too. As older files, with keys and values in one tensor.
YOUTU = YoutuConfig(
    **sizes(intermediate_size=48, num_hidden_layers=1, num_key_value_heads=4), kv_lora_rank=32, q_lora_rank=24,
    qk_rope_head_dim=16, qk_nope_head_dim=8, v_head_dim=16, rope_theta=1e6, tie_word_embeddings=True,
)  # fmt: skip
LATENT_NAMES = {
    "mlp.gate.e_score_correction_bias": "exp_probs_b.bias",
    "self_attn.q_a_proj": "attn_q_a", "self_attn.q_a_layernorm": "attn_q_a_norm", "self_attn.q_b_proj": "attn_q_b",
    "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm",
    "self_attn.kv_b_proj": "attn_kv_b", "mlp.gate": "ffn_gate_inp", "mlp.shared_experts.gate_proj": "ffn_gate_shexp",
    "mlp.shared_experts.up_proj": "ffn_up_shexp", "mlp.shared_experts.down_proj": "ffn_down_shexp",
}  # fmt: skip


def deepseek_keys(config):
    return {
        **llama_keys(config), "attention.head_count_kv": 1, "leading_dense_block_count": config.first_k_dense_replace,
        "attention.kv_lora_rank": config.kv_lora_rank, "rope.dimension_count": config.qk_rope_head_dim,
        "attention.key_length": config.kv_lora_rank + config.qk_rope_head_dim,
        "attention.value_length": config.kv_lora_rank,
        "attention.key_length_mla": config.qk_nope_head_dim + config.qk_rope_head_dim,
        "attention.value_length_mla": config.v_head_dim, "expert_feed_forward_length": config.moe_intermediate_size,
        "expert_count": config.n_routed_experts, "expert_used_count": config.num_experts_per_tok,
        "expert_shared_count": config.n_shared_experts, "expert_weights_scale": config.routed_scaling_factor,
        "expert_group_count": config.n_group, "expert_group_used_count": config.topk_group,
    }  # fmt: skip


def deepseek_v2_keys(config):
    return {
        **deepseek_keys(config), "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
        "rope.scaling.original_context_length": 32,
        "rope.scaling.yarn_log_multiplier": 0.0707,
    }  # fmt: skip


def deepseek_v3_keys(config):
    return {**deepseek_keys(config), "expert_gating_func": 2, "expert_weights_norm": True}


def youtu_keys(config):
    return {
        **llama_keys(config), "leading_dense_block_count": config.num_hidden_layers, "expert_shared_count": 0,
        "attention.q_lora_rank": config.q_lora_rank, "attention.kv_lora_rank": config.kv_lora_rank,
        "rope.dimension_count": config.qk_rope_head_dim,
        "attention.key_length": config.qk_nope_head_dim + config.qk_rope_head_dim,
        "attention.value_length": config.v_head_dim, "expert_feed_forward_length": config.intermediate_size,
    }  # fmt: skip


def youtu_tensors(config, tensors):
    return {gguf_name(name, LATENT_NAMES): array for name, array in tensors.items()}


def deepseek_tensors(config, tensors):
    made = {}
    for name, array in tensors.items():
        if expert := re.match(r"model\.layers\.(\d+)\.mlp\.experts\.\d+\.(\w+)_proj", name):
            made.setdefault(f"blk.{expert[1]}.ffn_{expert[2]}_exps.weight", []).append(array)
        elif joined := re.match(r"model\.layers\.(\d+)\.self_attn\.kv_b_proj", name):
            heads = array.reshape(config.num_attention_heads, -1, array.shape[1])
            keys, values = np.split(heads, [config.qk_nope_head_dim], axis=1)
            made[f"blk.{joined[1]}.attn_k_b.weight"] = np.ascontiguousarray(keys.swapaxes(1, 2))
            made[f"blk.{joined[1]}.attn_v_b.weight"] = values
        else:
            made[gguf_name(name, LATENT_NAMES)] = array
    return {name: np.stack(it) if isinstance(it, list) else it for name, it in made.items()}


# Llama 4: three layers with chunks, one without rotation, experts in every second one. Converters do not write the sizes of
# chunks and of the factor of queries, which are 8192 in all published models.
LLAMA4 = Llama4TextConfig(
    **sizes(hidden_size=48, intermediate_size=16, num_hidden_layers=4, num_attention_heads=3, num_key_value_heads=1),
    intermediate_size_mlp=40, head_dim=16, num_local_experts=4, num_experts_per_tok=2, interleave_moe_layer_step=2,
    attention_chunk_size=19, floor_scale=7, attn_scale=0.4,
    rope_parameters={"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
                     "high_freq_factor": 4.0, "original_max_position_embeddings": 32},
)  # fmt: skip
LLAMA4_NAMES = {
    "feed_forward.gate_proj": "ffn_gate", "feed_forward.up_proj": "ffn_up", "feed_forward.down_proj": "ffn_down",
    "feed_forward.router": "ffn_gate_inp", "feed_forward.shared_expert.gate_proj": "ffn_gate_shexp",
    "feed_forward.shared_expert.up_proj": "ffn_up_shexp", "feed_forward.shared_expert.down_proj": "ffn_down_shexp",
}  # fmt: skip


def llama4_folder(config, tensors):
    return {f"language_model.{name}": it for name, it in tensors.items()}


def llama4_config(text):
    return {"model_type": "llama4", "text_config": text, "vision_config": {"model_type": "llama4_vision_model"}}


def llama4_keys(config):
    return {
        **llama_keys(config), "feed_forward_length": config.intermediate_size_mlp,
        "attention.key_length": config.head_dim, "attention.value_length": config.head_dim,
        "rope.dimension_count": config.head_dim, "expert_count": config.num_local_experts,
        "expert_used_count": config.num_experts_per_tok, "expert_feed_forward_length": config.intermediate_size,
        "interleave_moe_layer_step": config.interleave_moe_layer_step,
        "attention.sliding_window": config.attention_chunk_size,
        "attention.temperature_length": config.floor_scale, "attention.temperature_scale": config.attn_scale,
    }  # fmt: skip


def llama4_tensors(config, tensors):
    made = {"rope_freqs.weight": llama3_factors(config)}
    for name, array in tensors.items():
        name = name.removeprefix("language_model.")
        if joined := re.match(r"model\.layers\.(\d+)\.feed_forward\.experts\.(\w+)_proj", name):
            halves = np.split(array.swapaxes(1, 2), 2 if joined[2] == "gate_up" else 1, axis=1)
            for part, half in zip(joined[2].split("_"), halves):
                made[f"blk.{joined[1]}.ffn_{part}_exps.weight"] = np.ascontiguousarray(half)
        else:
            made[gguf_name(name, LLAMA4_NAMES)] = array
    return made


def llama3_factors(config):
    """Divisors of the frequencies."""
    rope = config.rope_parameters
    waves = 2 * np.pi * rope["rope_theta"] ** (np.arange(0, config.head_dim, 2) / config.head_dim)
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    kept = (rope["original_max_position_embeddings"] / waves - low) / (high - low)
    kept = np.clip(kept, 0, 1)
    return (1 / ((1 - kept) / rope["factor"] + kept)).astype(np.float32)


# NVFP4: matrices of layers in groups of 16, with a factor for each matrix. Dense layers as ModelOpt writes them, experts as
# compressed-tensors does, whose factors are reciprocals.
NVFP4 = Qwen3Config(**sizes(intermediate_size=128), head_dim=32, rope_theta=1e6, tie_word_embeddings=True)
NVFP4_MOE = Qwen3MoeConfig(
    **sizes(num_hidden_layers=1), head_dim=16, rope_theta=1e6, num_experts=5, num_experts_per_tok=2,
    moe_intermediate_size=64, norm_topk_prob=True,
)  # fmt: skip
NVFP4_NAMES = {"self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate": "ffn_gate_inp"}
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=np.float32)


def is_nvfp4(name):
    return name.endswith("_proj.weight")


def nvfp4(name, tensor):
    """Levels, scales of groups, and the factor of a matrix: one of few bits, so that bfloat16 has the values."""
    factor = torch.tensor([0.75, 1, 1.5, 2][zlib.crc32(name.encode()) % 4] * 2.0**-11)
    groups = tensor.reshape(*tensor.shape[:-1], -1, 16)
    scales = (groups.abs().amax(-1) / 6 / factor).clamp(max=448).to(torch.float8_e4m3fn)
    nearest = (groups / (scales.float() * factor).unsqueeze(-1)).unsqueeze(-1).sub(torch.tensor(E2M1)).abs().argmin(-1)
    return nearest.to(torch.uint8).reshape(tensor.shape), scales, factor


def nvfp4_weights(config, tensors):
    """The values that the levels of each matrix represent. Those of experts are parts of joined ones."""
    for name, tensor in next_folder(config, tensors).items():
        if is_nvfp4(name):
            levels, scales, factor = nvfp4(name, tensor)
            values = torch.tensor(E2M1)[levels.long()].reshape(*scales.shape, 16)
            tensor.copy_((values * (scales.float() * factor).unsqueeze(-1)).reshape(tensor.shape))


def nvfp4_folder(experts):
    def change(config, tensors):
        made = {}
        for name, tensor in (next_folder(config, tensors) if experts else tensors).items():
            if not is_nvfp4(name):
                made[name] = tensor
                continue
            levels, scales, factor = nvfp4(name, tensor)
            module = name.removesuffix(".weight")
            made[f"{module}.weight_packed" if experts else name] = levels[:, 0::2] | levels[:, 1::2] << 4
            made[f"{module}.weight_scale"] = scales
            if experts:
                made[f"{module}.weight_global_scale"] = 1 / factor.reshape(1)
                made[f"{module}.input_global_scale"] = torch.tensor([7.0])
            else:
                made[f"{module}.weight_scale_2"] = factor
                made[f"{module}.input_scale"] = torch.tensor(0.01)
        return made

    return change


def nvfp4_config(**members):
    return lambda text: {**text, "quantization_config": members}


def nvfp4_keys(config):
    return {**llama_keys(config), "attention.key_length": config.head_dim, "attention.value_length": config.head_dim}


def nvfp4_moe_keys(config):
    return {**nvfp4_keys(config), "expert_count": config.num_experts, "expert_used_count": config.num_experts_per_tok,
            "expert_feed_forward_length": config.moe_intermediate_size}  # fmt: skip


def nvfp4_blocks(levels, scales):
    """Rows of blocks: the scales of four groups, then eight bytes for each, with elements i and i + 8."""
    groups = levels.reshape(len(levels), -1, 4, 16)
    levels = groups[..., :8] | groups[..., 8:] << 4
    scales = scales.view(torch.uint8).reshape(len(levels), -1, 4)
    return torch.cat([scales, levels.flatten(2)], -1).flatten(1).numpy()


def nvfp4_tensors(config, tensors):
    """Experts have their blocks one below the other, and a list of factors. What scales the input changes no product."""
    made, lists = {}, {}
    for name, array in next_folder(config, {name: torch.tensor(it) for name, it in tensors.items()}).items():
        if not is_nvfp4(name):
            made[gguf_name(name, NVFP4_NAMES)] = array.numpy()
            continue
        levels, scales, factor = nvfp4(name, array)
        blocks, factor = nvfp4_blocks(levels, scales), factor.numpy().reshape(1)
        if expert := re.match(r"model\.layers\.(\d+)\.mlp\.experts\.\d+\.(\w+)_proj", name):
            file = f"blk.{expert[1]}.ffn_{expert[2]}_exps"
            lists.setdefault(f"{file}.weight", []).append(blocks)
            lists.setdefault(f"{file}.scale", []).append(factor)
            continue
        file = gguf_name(name, NVFP4_NAMES)
        made[file] = blocks
        made[file.replace(".weight", ".scale")] = factor
        made[file.replace(".weight", ".input_scale")] = np.array([0.01], dtype=np.float32)
    for file, parts in lists.items():
        made[file] = np.stack(parts) if file.endswith(".weight") else np.concatenate(parts)
    return made


def unchanged(config, tensors):
    return tensors


def same(model):
    return model


def nanbeige_config(text):
    return {**text, "model_type": "nanbeige", "num_loops": LOOPS, "skip_loop_final_norm": False}


@dataclass
class Model:
    """A model and its two forms."""

    architecture: str
    config: object
    keys: object
    # Converts the names and arrays of a checkpoint to those of a file.
    converted: object
    # Changes the random weights in place.
    weights: object = lambda config, tensors: None
    # The tensors and the config of the published folder.
    folder: object = unchanged
    published: object = dict
    # The model that computes the reference.
    reference: object = same
    # Tensors of the file that are TQ2_0.
    ternary: str = "$^"


MODELS = {
    "falcon-h1": Model("falcon-h1", FALCON, falcon_keys, falcon_tensors),
    "falcon-h1-groups": Model("falcon-h1", FALCON_GROUPS, falcon_keys, falcon_tensors),
    "nanbeige": Model("nanbeige", NANBEIGE, nanbeige_keys, nanbeige_tensors, published=nanbeige_config,
                      reference=nanbeige_model),
    "bitnet": Model("bitnet-b1.58", BITNET, llama_keys, bitnet_tensors, bitnet_weights, bitnet_folder, bitnet_config,
                    ternary=r"blk\.\d+\.(attn|ffn)_(q|k|v|output|gate|up|down)\.weight"),
    "deepseek2": Model("deepseek2", DEEPSEEK, deepseek_v2_keys, deepseek_tensors, folder=next_folder),
    "deepseek3": Model("deepseek2", DEEPSEEK_V3, deepseek_v3_keys, deepseek_tensors, folder=next_folder),
    "deepseek2-joined": Model("deepseek2", YOUTU, youtu_keys, youtu_tensors),
    "llama4": Model("llama4", LLAMA4, llama4_keys, llama4_tensors, folder=llama4_folder, published=llama4_config),
    "nvfp4": Model("qwen3", NVFP4, nvfp4_keys, nvfp4_tensors, nvfp4_weights, nvfp4_folder(False),
                   nvfp4_config(quant_method="modelopt", quant_algo="NVFP4")),
    "nvfp4-moe": Model("qwen3moe", NVFP4_MOE, nvfp4_moe_keys, nvfp4_tensors, nvfp4_weights, nvfp4_folder(True),
                       nvfp4_config(quant_method="compressed-tensors", format="nvfp4-pack-quantized")),
    "qwen3next": Model("qwen3next", NEXT, next_keys, next_tensors, next_weights, next_folder),
}  # fmt: skip


def stored(tensor):
    is_packed = tensor.dtype in (torch.uint8, torch.float8_e4m3fn) or tensor.numel() == 1
    return (tensor if is_packed else tensor.bfloat16()).contiguous()


def make(name):
    made = MODELS[name]
    config = made.config
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    text = json.loads(config.to_json_string())
    keys = made.keys(config)
    model = built(config, name)
    with torch.no_grad():
        made.weights(config, model.state_dict())
        for tensor in model.state_dict().values():
            tensor.copy_(tensor.bfloat16())
    tensors = {key: it.clone() for key, it in model.state_dict().items()}
    if config.tie_word_embeddings:
        del tensors["lm_head.weight"]
    published = made.folder(config, tensors)
    save_file({key: stored(it) for key, it in published.items()}, folder / "model.safetensors",
              metadata={"format": "pt"})  # fmt: skip
    (folder / "model.safetensors").chmod(0o644)
    text.pop("time_step_limit", None)
    (folder / "config.json").write_text(json.dumps(made.published(text), indent=2) + "\n")
    # Packed levels are not converted again.
    floats = published if not any(it.dtype == torch.uint8 for it in published.values()) else tensors
    arrays = {key: it.numpy() for key, it in floats.items()}
    write(FOLDER / f"{name}.gguf", made.architecture, keys, made.converted(config, arrays), made.ternary)
    model = made.reference(model)
    generator = np.random.default_rng(PROMPT_TOKENS)
    ids = generator.integers(0, config.vocab_size, PROMPT_TOKENS).tolist()
    with torch.no_grad():
        rows = model(torch.tensor([ids]), use_cache=False).logits[0].numpy()
    document = {
        "ids": ids,
        "last_logits": [float(f"{value:.6g}") for value in rows[-1]],
        "greedy_next": rows.argmax(axis=1).tolist(),
    }
    (FOLDER / f"{name}.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")
    size = sum(path.stat().st_size for path in [*folder.iterdir(), FOLDER / f"{name}.gguf"])
    print(f"{name}: {size} bytes, logits spread by {rows.std():.2f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for wanted in sys.argv[1:] or MODELS:
        make(wanted)
