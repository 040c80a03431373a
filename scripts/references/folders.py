"""Makes the folders in tests/parity/models of models that came after requirements.txt's version of transformers, in the form
of their published checkpoints: nested text configurations, joined experts, blocks of MXFP4, 8-bit floats.

    VENV/bin/pip install -r scripts/references/requirements-folders.txt
    VENV/bin/python scripts/references/folders.py [NAME ...]

Each is an archive, NAME.tar, with the files of the folder and reference.json: the logits that transformers computes in
float32 from its values.
"""

import json
import re
import sys
import zlib
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save
from transformers import (
    AutoModelForCausalLM,
    Gemma4TextConfig,
    GptOssConfig,
    GraniteConfig,
    GraniteMoeHybridConfig,
    Lfm2Config,
    Lfm2MoeConfig,
    Ministral3Config,
    Qwen3_5MoeTextConfig,
    Qwen3_5TextConfig,
    Qwen3Config,
)

sys.dont_write_bytecode = True

import archive  # noqa: E402

FOLDER = Path(__file__).parents[2] / "tests/parity/models"
PROMPT_TOKENS = 80
SIZES = {
    "vocab_size": 320, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "bos_token_id": None, "eos_token_id": None,
    "pad_token_id": None,
}  # fmt: skip
DELTA = {
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 32, "linear_value_head_dim": 32,
    "layer_types": ["linear_attention", "full_attention"], "head_dim": 32, "partial_rotary_factor": 0.25,
}  # fmt: skip
MAMBA = {
    "layer_types": ["linear_attention", "full_attention"], "mamba_n_heads": 4, "mamba_d_head": 32, "mamba_d_state": 32,
    "mamba_n_groups": 1, "mamba_expand": 2, "embedding_multiplier": 6.0, "attention_multiplier": 0.15,
    "residual_multiplier": 0.6, "logits_scaling": 0.5, "position_embedding_type": "nope", "shared_intermediate_size": 96,
}  # fmt: skip
GEMMA4 = {
    "layer_types": ["sliding_attention", "full_attention"] * 2, "head_dim": 16, "global_head_dim": 32,
    "sliding_window": 24, "final_logit_softcapping": 4.0, "vocab_size_per_layer_input": 320,
}  # fmt: skip
# Values of four-bit floats.
E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def sizes(**changes):
    return {**SIZES, **changes}


def centre(name, model_type):
    if name.endswith(("A_log", "layer_scalar", "router.scale", "per_expert_scale")) or name.endswith(".D"):
        return 0.7
    is_norm = re.search(r"norm(_\d)?\.weight$|layernorm\.weight$", name)
    # Code of Qwen3.5 adds 1 to its norms, but not to those of delta nets.
    adds_one = model_type.startswith("qwen3_5") and "linear_attn" not in name
    return 1.0 if is_norm and not adds_one else 0.0


def deviation(name, parameter, model_type):
    if parameter.ndim == 1:
        return 0.5 if "sinks" in name else 0.2
    fan_in = parameter.shape[-1]
    if model_type in ("gpt_oss", "llama4_text") and parameter.ndim == 3:
        fan_in = parameter.shape[1]
    if "embed_tokens" in name:
        return 0.3
    sharp = re.search(r"q_proj|k_proj|\.gate\.weight|router|expert_bias", name)
    return (1.6 if sharp else 2.0 if "lm_head" in name else 1.2) * fan_in**-0.5


def fill(model, name):
    """Fills parameters and buffers that checkpoints hold."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    kind = model.config.model_type
    with torch.no_grad():
        for key, tensor in sorted(model.state_dict().items()):
            normal = torch.randn(tensor.shape, generator=generator)
            tensor.copy_(centre(key, kind) + normal * deviation(key, tensor, kind))
        for key, tensor in model.state_dict().items():
            if not key.endswith(("in_proj_qkv.weight", "linear_attn.conv1d.weight")):
                continue
            # Keys like queries: the norm of what a state gives the first tokens would amplify roundings.
            keys = tensor.shape[0] // 4
            tensor[keys : 2 * keys] = tensor[:keys] + 0.3 * tensor[keys : 2 * keys]
    model.tie_weights()


def built(config, name):
    config._attn_implementation = "eager"
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    fill(model, name)
    with torch.no_grad():
        for tensor in model.state_dict().values():
            tensor.copy_(tensor.bfloat16())
    return model


def split_experts(tensors, gate_up, down, names):
    """Replaces joined experts by a matrix each."""
    split = {}
    for key, tensor in tensors.items():
        if key.endswith(gate_up):
            half = tensor.shape[1] // 2
            for i, expert in enumerate(tensor):
                split[key.replace(gate_up, f"{i}.{names[0]}.weight")] = expert[:half]
                split[key.replace(gate_up, f"{i}.{names[1]}.weight")] = expert[half:]
        elif key.endswith(down):
            for i, expert in enumerate(tensor):
                split[key.replace(down, f"{i}.{names[2]}.weight")] = expert
        else:
            split[key] = tensor
    return split


def lfm2moe(tensors):
    return split_experts(tensors, "gate_up_proj", "down_proj", ["w1", "w3", "w2"])


def granite(tensors):
    changes = {
        ".experts.gate_up_proj": ".input_linear.weight", ".experts.down_proj": ".output_linear.weight",
        ".router.weight": ".router.layer.weight",
    }  # fmt: skip
    for old, new in changes.items():
        tensors = {key.replace(old, new): tensor for key, tensor in tensors.items()}
    return tensors


def beside(*others):
    """Names beside other parts, of which there are these tensors."""

    def change(tensors):
        renamed = {key.replace("model.", "model.language_model.", 1): it for key, it in tensors.items()}
        return {**renamed, **{name: torch.zeros(4) for name in others}}

    return change


QWEN35_PARTS = beside("model.visual.patch_embed.proj.bias", "mtp.norm.weight")
GEMMA4_PARTS = beside("model.vision_tower.std_bias", "model.audio_tower.norm_out.weight")


def without_shared_keys(config):
    """Published checkpoints of Gemma 4 have keys for layers that use those of others, too."""

    def change(tensors):
        own = config.num_hidden_layers - config.num_kv_shared_layers
        for layer in range(own, config.num_hidden_layers):
            for part in ["k_proj.weight", "v_proj.weight", "k_norm.weight"]:
                of = f"model.layers.{layer - 2}.self_attn.{part}"
                tensors[f"model.layers.{layer}.self_attn.{part}"] = tensors[of] + 1
        return GEMMA4_PARTS(tensors)

    return change


def mxfp4(matrix):
    """Blocks and exponents of the rows, and the values that they represent."""
    blocks = matrix.reshape(*matrix.shape[:-1], -1, 32)
    exponent = torch.floor(torch.log2(blocks.abs().amax(-1, keepdim=True))) - 2
    levels = (blocks / exponent.exp2()).unsqueeze(-1).sub(E2M1).abs().argmin(-1)
    values = (E2M1[levels] * exponent.exp2()).reshape(matrix.shape)
    packed = levels[..., 0::2] | levels[..., 1::2] << 4
    return packed.to(torch.uint8), (exponent.squeeze(-1) + 127).to(torch.uint8), values


def gpt_oss(tensors):
    packed = {}
    for key, tensor in tensors.items():
        if key.endswith(("experts.gate_up_proj", "experts.down_proj")):
            blocks, exponents, values = mxfp4(tensor.transpose(1, 2).contiguous())
            tensor.copy_(values.transpose(1, 2))
            packed[f"{key}_blocks"], packed[f"{key}_scales"] = blocks, exponents
        else:
            packed[key] = tensor
    return packed


def fp8(rectangle):
    """Matrices of layers as 8-bit floats, with a scale for each rectangle, or one for all."""

    def change(tensors):
        packed = {}
        for key, tensor in tensors.items():
            packed[key] = tensor
            if tensor.ndim != 2 or ".layers." not in key:
                continue
            rows, cols = rectangle or tensor.shape
            scales = torch.stack([torch.stack([part.abs().max() / 448 for part in band.split(cols, 1)])
                                  for band in tensor.split(rows)]).bfloat16().float()  # fmt: skip
            each = scales.repeat_interleave(rows, 0).repeat_interleave(cols, 1)
            each = each[: tensor.shape[0], : tensor.shape[1]]
            packed[key] = (tensor / each).to(torch.float8_e4m3fn)
            tensor.copy_(packed[key].float() * each)
            packed[f"{key}_scale_inv"] = scales if rectangle else scales.reshape(())
            if not rectangle:
                packed[key.replace("weight", "activation_scale")] = torch.ones(())
        return packed

    return change


QWEN3 = sizes(head_dim=32, rope_theta=1e6, tie_word_embeddings=True)
GEMMA4_SHARED = Gemma4TextConfig(
    **sizes(num_hidden_layers=4, intermediate_size=32, num_attention_heads=2, num_key_value_heads=1), **GEMMA4,
    num_kv_shared_layers=2, use_double_wide_mlp=True, hidden_size_per_layer_input=16,
)  # fmt: skip
GEMMA4_MOE = Gemma4TextConfig(
    **sizes(intermediate_size=32), **{**GEMMA4, "layer_types": GEMMA4["layer_types"][:2]}, hidden_size_per_layer_input=0,
    attention_k_eq_v=True, num_global_key_value_heads=1, enable_moe_block=True, num_experts=4, top_k_experts=2,
    moe_intermediate_size=32, use_bidirectional_attention="vision",
)  # fmt: skip


def as_first_published(text):
    """Sizes of global layers as members of their own."""
    own = text.pop("per_layer_config")["1"]
    return {**text, "global_head_dim": own["head_dim"], "num_global_key_value_heads": own["num_key_value_heads"]}


def beside_tower(kind, change=lambda text: text):
    def config(text):
        return {"model_type": kind, "text_config": change(text), "vision_config": {"model_type": f"{kind}_vision"},
                "tie_word_embeddings": text["tie_word_embeddings"]}  # fmt: skip

    return config


def as_minicpm(text):
    """A MiniCPM with the factors of a Granite whose scores have the usual one."""
    factors = {"scale_emb": text.pop("embedding_multiplier"),
               "scale_depth": text.pop("residual_multiplier") * text["num_hidden_layers"] ** 0.5,
               "dim_model_base": text["hidden_size"] / text.pop("logits_scaling")}  # fmt: skip
    text.pop("attention_multiplier")
    return {**text, **factors, "model_type": "minicpm"}


def as_language_model(tensors):
    """Names of models whose tower is beside the whole text model."""
    return {**{f"language_model.{key}": it for key, it in tensors.items()}, "vision_tower.ln_pre.weight": torch.ones(4)}


def quantized(**members):
    return lambda text: {**text, "quantization_config": members}


def whole(document):
    return document


# Name: config, how tensors and the config become those of a checkpoint.
MODELS = {
    "lfm2-hf": (
        Lfm2Config(**sizes(intermediate_size=144), layer_types=["conv", "full_attention"], block_multiple_of=32,
                   rope_theta=1e6), whole, whole),
    "lfm2moe-hf": (
        Lfm2MoeConfig(**SIZES, layer_types=["conv", "full_attention"], num_dense_layers=1, num_experts=4,
                      num_experts_per_tok=2, moe_intermediate_size=32), lfm2moe, whole),
    "qwen35-hf": (
        Qwen3_5TextConfig(**SIZES, **DELTA, tie_word_embeddings=True), QWEN35_PARTS, beside_tower("qwen3_5")),
    "qwen35moe-hf": (
        Qwen3_5MoeTextConfig(**SIZES, **DELTA, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
                             shared_expert_intermediate_size=32), QWEN35_PARTS,
        beside_tower("qwen3_5_moe")),
    "granitehybrid-hf": (
        GraniteMoeHybridConfig(**SIZES, **MAMBA, num_local_experts=0, tie_word_embeddings=True), granite, whole),
    "granitehybrid-moe-hf": (
        GraniteMoeHybridConfig(**sizes(intermediate_size=16), **MAMBA, num_local_experts=4, num_experts_per_tok=2,
                               tie_word_embeddings=True), granite, whole),
    "gemma4-hf": (GEMMA4_SHARED, without_shared_keys(GEMMA4_SHARED), beside_tower("gemma4")),
    "gemma4-moe-hf": (GEMMA4_MOE, GEMMA4_PARTS, beside_tower("gemma4", as_first_published)),
    "gpt-oss-hf": (
        GptOssConfig(**sizes(intermediate_size=32), head_dim=32, sliding_window=24, num_local_experts=4,
                     num_experts_per_tok=2,
                     rope_parameters={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32,
                                      "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False, "rope_theta": 1e4}),
        gpt_oss, quantized(quant_method="mxfp4", modules_to_not_convert=["lm_head"])),
    "mistral3-hf": (
        Ministral3Config(**SIZES, head_dim=32,
                         rope_parameters={"type": "yarn", "rope_type": "yarn", "rope_theta": 1e4, "factor": 16.0,
                                          "original_max_position_embeddings": 24, "beta_fast": 32.0,
                                          "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                                          "llama_4_scaling_beta": 0.1}),
        as_language_model, beside_tower("mistral3")),
    "minicpm-hf": (
        GraniteConfig(**SIZES, embedding_multiplier=6.0, attention_multiplier=0.25, residual_multiplier=0.7,
                      logits_scaling=0.5, tie_word_embeddings=True), whole, as_minicpm),
    "fp8-blocks-hf": (
        Qwen3Config(**QWEN3), fp8([32, 48]),
        quantized(quant_method="fp8", fmt="e4m3", weight_block_size=[32, 48], activation_scheme="dynamic")),
    "fp8-hf": (
        Qwen3Config(**QWEN3), fp8(None),
        quantized(quant_method="fp8", weight_block_size=None, activation_scheme="static")),
}  # fmt: skip


def make(name):
    config, of_tensors, of_config = MODELS[name]
    model = built(config, name)
    tensors = dict(model.state_dict())
    if config.tie_word_embeddings:
        del tensors["lm_head.weight"]
    with torch.no_grad():
        kept = of_tensors(tensors)
    kept = {key: it.bfloat16() if it.dtype == torch.float32 else it for key, it in kept.items()}
    weights = save({key: it.contiguous() for key, it in kept.items()}, metadata={"format": "pt"})
    text = json.loads(config.to_json_string())
    text.pop("time_step_limit", None)
    text = json.dumps(of_config(text), indent=2) + "\n"
    generator = np.random.default_rng(PROMPT_TOKENS)
    ids = generator.integers(0, SIZES["vocab_size"], PROMPT_TOKENS).tolist()
    with torch.no_grad():
        rows = model(torch.tensor([ids]), use_cache=False).logits[0].numpy()
    document = {
        "ids": ids,
        "last_logits": [float(f"{value:.6g}") for value in rows[-1]],
        "greedy_next": rows.argmax(axis=1).tolist(),
    }
    reference = json.dumps(document, separators=(",", ":")) + "\n"
    files = {"config.json": text.encode(), "model.safetensors": weights, "reference.json": reference.encode()}
    archive.write(FOLDER / f"{name}.tar", files)
    size = sum(len(data) for data in files.values())
    print(f"{name}: {size} bytes, logits spread by {rows.std():.2f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for wanted in sys.argv[1:] or MODELS:
        make(wanted)
