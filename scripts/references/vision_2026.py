"""Makes tests/parity/images of the families of 2026, which need a later version of transformers than vision_grids.py: text
models, `mmproj` files as llama.cpp's converter would write them, folders, and what transformers computes in float32.

    VENV/bin/pip install -r scripts/references/requirements-folders.txt
    VENV/bin/python scripts/references/vision_2026.py [NAME ...]

The form of the files is that of vision_grids.py. A text model has as many key heads as value heads where converters
would put the latter in another order.
"""

import re
import sys
import zlib

sys.dont_write_bytecode = True

import gguf  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration  # noqa: E402

import archive  # noqa: E402
import tiny_tokenizer  # noqa: E402
import vision_grids  # noqa: E402
from vision_grids import FOLDER, IMAGE, PIXELS, TOKENIZER, VIDEO, VISION_START, add_tensors, add_vision, writer  # noqa: E402

SIZES = {
    "vocab_size": tiny_tokenizer.VOCAB_SIZE, "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
    "bos_token_id": None, "eos_token_id": None, "pad_token_id": None,
}  # fmt: skip


def deviation(key, value):
    if value.ndim == 1 or "conv" in key:
        return 0.2
    if "embed" in key:
        return 0.3
    # Makes attention scores spread by a few units.
    sharp = 1.6 if re.search("q_proj|k_proj|qkv", key) else 2.0 if "lm_head" in key else 1.2
    return sharp * (value.numel() / value.shape[0]) ** -0.5


def fill(model, name, centre):
    """Random values, rounded as the files hold them; `centre` gives the mean of those of a key."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    state = model.state_dict()
    for key, value in sorted(state.items()):
        normal = torch.randn(value.shape, generator=generator)
        filled = centre(key) + normal * deviation(key, value)
        value.copy_(filled if is_plain(key, value) else filled.half().float())
    model.tie_weights()
    return state


def is_plain(key, value):
    """Whether files hold a tensor as F32."""
    return value.ndim == 1 or re.search("pos_embed|position_embedding|conv1d|conv.conv", key) is not None


def is_norm(key):
    return re.search(r"norm\d?\.weight$", key) is not None


class Text:
    """The tensors of a text model's file, and the places of those of the checkpoint."""

    def __init__(self, architecture, layers, prefix):
        arch = next(key for key, value in gguf.MODEL_ARCH_NAMES.items() if value == architecture)
        self.names, self.prefix = gguf.get_tensor_name_map(arch, layers), prefix
        self.tensors, self.places, self.forms = {}, {}, {}

    def add(self, key, value, name=None, form="as it is"):
        inner = "model." + key.removeprefix(self.prefix) if key.startswith(self.prefix) else key
        name = name or self.names.get_name(inner, try_suffixes=(".weight", ".bias"))
        assert name, key
        self.tensors[name] = changed(value.numpy(), form)
        self.places[inner], self.forms[key] = [name], form


def changed(array, form):
    """An array of the checkpoint as the file has it."""
    match form:
        case "plus one":
            return array + 1
        case "negated exponential":
            return -np.exp(array)
        case "squeezed":
            return array[:, 0]
    return array


def write(name, file, text):
    tiny_tokenizer.add_to_gguf(file, TOKENIZER)
    add_tensors(file, text.tensors)


def qwen35():
    rope = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5, "mrope_section": [4, 2, 2],
            "mrope_interleaved": True}  # fmt: skip
    config = Qwen3_5Config(
        text_config=SIZES | {
            "num_hidden_layers": 4, "head_dim": 32, "layer_types": ["linear_attention", "full_attention"] * 2,
            "linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 32,
            "linear_value_head_dim": 32, "rope_parameters": rope,
        },
        vision_config={
            "depth": 3, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "patch_size": 4,
            "out_hidden_size": 64, "num_position_embeddings": 25,
        },
        image_token_id=IMAGE, video_token_id=VIDEO, vision_start_token_id=VISION_START, tie_word_embeddings=False,
    )  # fmt: skip
    config._attn_implementation = "eager"
    model = Qwen3_5ForConditionalGeneration(config).float().eval()
    of_text = "model.language_model."

    def centre(key):
        if key.endswith("A_log"):
            return 0.7
        # The code adds 1 to norms of the text model, but not to those of delta nets.
        return float(is_norm(key) and (of_text not in key or "linear_attn" in key))

    with torch.no_grad():
        state = fill(model, "qwen35, 2", centre)
        for key, value in state.items():
            if re.search(r"in_proj_qkv|linear_attn\.conv1d", key):
                # Keys like queries: the norm of what a state gives the first tokens would amplify roundings.
                keys = value.shape[0] // 3
                mixed = value[:keys] + 0.3 * value[keys : 2 * keys]
                value[keys : 2 * keys] = mixed if "conv1d" in key else mixed.half().float()
    text = Text("qwen35", 4, of_text)
    for key, value in state.items():
        if key.startswith("model.visual."):
            continue
        layer = key.split(".")[3] if ".layers." in key else ""
        if key.endswith("A_log"):
            text.add(key, value, f"blk.{layer}.ssm_a", "negated exponential")
        elif key.endswith("dt_bias"):
            text.add(key, value, f"blk.{layer}.ssm_dt.bias")
        elif key.endswith("conv1d.weight"):
            text.add(key, value, form="squeezed")
        elif is_norm(key) and "linear_attn" not in key:
            text.add(key, value, form="plus one")
        else:
            text.add(key, value)
    file = writer(FOLDER / "qwen35.gguf", "qwen35", "qwen35")
    texts = config.text_config
    file.add_block_count(4)
    file.add_context_length(texts.max_position_embeddings)
    file.add_embedding_length(texts.hidden_size)
    file.add_head_count(texts.num_attention_heads)
    file.add_feed_forward_length(texts.intermediate_size)
    file.add_head_count_kv(texts.num_key_value_heads)
    file.add_layer_norm_rms_eps(texts.rms_norm_eps)
    file.add_rope_freq_base(10000.0)
    file.add_rope_dimension_count(16)
    file.add_rope_dimension_sections([4, 2, 2, 0])
    file.add_key_length(32)
    file.add_value_length(32)
    file.add_ssm_conv_kernel(texts.linear_conv_kernel_dim)
    file.add_ssm_state_size(32)
    file.add_ssm_group_count(2)
    file.add_ssm_time_step_rank(2)
    file.add_ssm_inner_size(64)
    file.add_full_attention_interval(2)
    write("qwen35", file, text)

    file = writer(FOLDER / "qwen35.mmproj.gguf", "clip", "qwen35")
    vision = config.vision_config
    # llama.cpp's projector of Qwen3-VL, without layers whose outputs become values for the text model.
    add_vision(file, "qwen3vl_merger", vision, texts.hidden_size, 1e-6)
    file.add_vision_image_size(5 * vision.patch_size)
    file.add_vision_use_gelu(True)
    file.add_vision_is_deepstack_layers([False] * vision.depth)
    tensors, places = vision_grids.qwen3vl_tower(state, [])
    add_tensors(file, tensors)
    vision_grids.write_folder("qwen35", config, state, text.places, places, PIXELS, forms=text.forms)

    def features(pixels, grid):
        return model.model.visual(pixels, grid_thw=grid).pooler_output

    vision_grids.refer("qwen35", model, 4, features, PIXELS, has_token_types=True)


MODELS = {"qwen35": qwen35}


def main():
    torch.set_num_threads(1)
    for name in sys.argv[1:] or MODELS:
        MODELS[name]()
        archive.pack(name)


if __name__ == "__main__":
    main()
