"""Makes tests/parity/images of the families of 2026, which need a later version of transformers than vision_grids.py: text
models, `mmproj` files as llama.cpp's converter would write them, folders, and what transformers computes in float32.

    VENV/bin/pip install -r scripts/references/requirements-folders.txt
    VENV/bin/python scripts/references/vision_2026.py [NAME ...]

The form of the files of qwen35 is that of vision_grids.py, that of the others is that of vision.py. A text model has as many key heads as value heads where converters
would put the latter in another order.
"""

import json
import re
import sys
import zlib

sys.dont_write_bytecode = True

import gguf  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from transformers import (  # noqa: E402
    Gemma4Config,
    Gemma4ForConditionalGeneration,
    Lfm2VlConfig,
    Lfm2VlForConditionalGeneration,
    Lfm2VlImageProcessor,
    Qwen3_5Config,
    Qwen3_5ForConditionalGeneration,
)

from transformers.modeling_outputs import BaseModelOutputWithPooling  # noqa: E402

import archive  # noqa: E402
import tiny_tokenizer  # noqa: E402
import vision_grids  # noqa: E402
from images_2026 import gemma4_pixels, lfm2vl_parts, patches_of  # noqa: E402
from vision_grids import FOLDER, IMAGE, PIXELS, TOKENIZER, VIDEO, VISION_START, add_tensors, add_vision, writer  # noqa: E402

SIZES = {
    "vocab_size": tiny_tokenizer.VOCAB_SIZE, "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
    "bos_token_id": None, "eos_token_id": None, "pad_token_id": None,
}  # fmt: skip


def deviation(key, value):
    if value.ndim <= 1 or "conv" in key:
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
    return value.ndim <= 1 or re.search("pos_embed|position_embedding|conv1d|conv.conv", key) is not None


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


def write(file, text, tokenizer=TOKENIZER, template=None):
    tiny_tokenizer.add_to_gguf(file, tokenizer)
    if template:
        file.add_chat_template(template)
    add_tensors(file, text.tensors)


def add_text_keys(file, config, heads_kv):
    """The keys that all text models have."""
    file.add_block_count(config.num_hidden_layers)
    file.add_context_length(config.max_position_embeddings)
    file.add_embedding_length(config.hidden_size)
    file.add_head_count(config.num_attention_heads)
    file.add_head_count_kv(heads_kv)


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
    text_config = config.text_config
    add_text_keys(file, text_config, text_config.num_key_value_heads)
    file.add_feed_forward_length(text_config.intermediate_size)
    file.add_layer_norm_rms_eps(text_config.rms_norm_eps)
    file.add_rope_freq_base(10000.0)
    file.add_rope_dimension_count(16)
    file.add_rope_dimension_sections([4, 2, 2, 0])
    file.add_key_length(32)
    file.add_value_length(32)
    file.add_ssm_conv_kernel(text_config.linear_conv_kernel_dim)
    file.add_ssm_state_size(32)
    file.add_ssm_group_count(2)
    file.add_ssm_time_step_rank(2)
    file.add_ssm_inner_size(64)
    file.add_full_attention_interval(2)
    write(file, text)

    file = writer(FOLDER / "qwen35.mmproj.gguf", "clip", "qwen35")
    vision = config.vision_config
    # llama.cpp's projector of Qwen3-VL, without layers whose outputs become values for the text model.
    add_vision(file, "qwen3vl_merger", vision, text_config.hidden_size, 1e-6)
    file.add_vision_image_size(5 * vision.patch_size)
    file.add_vision_use_gelu(True)
    file.add_vision_is_deepstack_layers([False] * vision.depth)
    tensors, places = vision_grids.qwen3vl_tower(state, [])
    add_tensors(file, tensors)
    vision_grids.write_folder("qwen35", config, state, text.places, places, PIXELS, forms=text.forms)

    def features(pixels, grid):
        return model.model.visual(pixels, grid_thw=grid).pooler_output

    vision_grids.refer("qwen35", model, 4, features, PIXELS, has_token_types=True)


def described(values):
    return [float(f"{value:.6g}") for value in np.asarray(values).flatten()]


def text_of(count, seed):
    """Ids of texts."""
    return np.random.default_rng(seed).integers(100, 250, count).tolist()


def describe(name, sizes, parts, prompt, logits, moved):
    """`parts` are the rows of each part of the images; `moved` is how far the logits are without what is tested."""
    assert moved > 0.3, f"{name}: logits are moved by {moved} only"
    document = {
        "images": sizes, "features": [described(rows) for rows in parts], "prompt": prompt,
        "last_logits": described(logits[-1]), "greedy_next": logits.argmax(axis=1).tolist(),
    }  # fmt: skip
    (FOLDER / f"{name}.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")
    print(f"{name}: logits spread by {np.std(logits):.2f}, moved by {moved:.2f}; rows by {np.std(np.asarray(parts[0])):.2f}")


# The form of matrices that `convolution` changes.
PATCHES = {"model.vision_tower.embeddings.patch_embedding.weight": "channels last"}


def convolution(matrix, patch):
    """The matrix of patches as the converter writes it: the kernels of a convolution."""
    return matrix.reshape(matrix.shape[0], patch, patch, 3).transpose(0, 3, 1, 2)


LFM2_TOKENS = ["<|pad|>", "<|startoftext|>", "<|im_start|>", "<|im_end|>", "<image>", "<|image_start|>", "<|image_end|>",
               "<|img_thumbnail|>", "<|img_row_1_col_1|>", "<|img_row_1_col_2|>"]  # fmt: skip
# The roles and images of LFM2-VL's own template.
LFM2_TEMPLATE = """{{ bos_token }}{% for message in messages %}<|im_start|>{{ message['role'] }}
{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for item in message['content'] %}
{%- if item['type'] == 'image' %}<image>{% else %}{{ item['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def lfm2vl_places(state, layers, vision, file_tensors):
    """Adds the tensors of the tower and says which those of the checkpoint are."""
    # The second matrix of the projector is counted like a third layer.
    table = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, max(layers, 3))
    places = {}
    for key, value in state.items():
        if "language_model" in key or key == "lm_head.weight":
            continue
        known = key.removeprefix("model.").replace("vision_tower.", "vision_tower.vision_model.")
        known = known.replace("vision_model.vision_model.", "vision_model.")
        name = table.get_name(known, try_suffixes=(".weight", ".bias"))
        assert name, key
        array = value.numpy()
        file_tensors[name] = convolution(array, vision.patch_size) if key.endswith("patch_embedding.weight") else array
        places[key] = [name]
    return places


def lfm2vl():
    patch, tile = 4, 32
    token = tiny_tokenizer.byte_level(LFM2_TOKENS)[0].index
    config = Lfm2VlConfig(
        text_config=SIZES | {
            "model_type": "lfm2", "num_hidden_layers": 4, "layer_types": ["conv", "full_attention"] * 2,
            "block_auto_adjust_ff_dim": False, "conv_L_cache": 3, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
            "norm_eps": 1e-5, "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "tie_embedding": True,
        },
        vision_config={
            "model_type": "siglip2_vision_model", "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2,
            "num_attention_heads": 3, "patch_size": patch, "num_patches": 25, "vision_use_head": False,
        },
        projector_hidden_size=72, image_token_id=token("<image>"), tie_word_embeddings=True,
    )  # fmt: skip
    config._attn_implementation = "eager"
    model = Lfm2VlForConditionalGeneration(config).float().eval()
    of_text = "model.language_model."
    with torch.no_grad():
        state = fill(model, "lfm2vl", lambda key: float(is_norm(key) or "layernorm" in key and key.endswith("weight")))
    text = Text("lfm2", 4, of_text)
    for key, value in state.items():
        if key.startswith(of_text):
            form = "squeezed" if key.endswith("conv.conv.weight") else "as it is"
            text.add(key, value, "token_embd_norm.weight" if key.endswith("embedding_norm.weight") else None, form)
    file = writer(FOLDER / "lfm2vl.gguf", "lfm2", "lfm2vl")
    text_config, vision = config.text_config, config.vision_config
    add_text_keys(file, text_config, [0, text_config.num_key_value_heads] * 2)
    file.add_feed_forward_length(text_config.intermediate_size)
    file.add_layer_norm_rms_eps(text_config.norm_eps)
    file.add_rope_freq_base(10000.0)
    file.add_vocab_size(text_config.vocab_size)
    file.add_shortconv_l_cache(3)
    write(file, text, ("lfm2", LFM2_TOKENS, "<|startoftext|>", "<|im_end|>", False), LFM2_TEMPLATE)

    file = writer(FOLDER / "lfm2vl.mmproj.gguf", "clip", "lfm2vl")
    tensors = {}
    places = lfm2vl_places(state, vision.num_hidden_layers, vision, tensors)
    vision.depth, vision.num_heads, vision.spatial_merge_size = 2, 3, 2
    rows = [8, 24]
    processor = Lfm2VlImageProcessor(
        min_image_tokens=rows[0], max_image_tokens=rows[1], encoder_patch_size=patch, tile_size=tile,
    )  # fmt: skip
    pixels = [count * (2 * patch) ** 2 for count in rows]
    add_vision(file, "lfm2", vision, text_config.hidden_size, vision.layer_norm_eps, pixels)
    file.add_vision_use_gelu(True)
    file.add_vision_image_size(5 * patch)
    file.add_vision_projector_scale_factor(2)
    # The converter leaves the key out: it is 512 in all of the family's models.
    file.add_uint32("clip.vision.preproc_image_size", tile)
    add_tensors(file, tensors)
    for name in ["depth", "num_heads", "spatial_merge_size"]:
        delattr(vision, name)
    preprocessor = {"min_image_tokens": rows[0], "max_image_tokens": rows[1], "tile_size": tile}
    vision_grids.write_folder("lfm2vl", config, state, text.places, places, preprocessor, forms=text.forms | PATCHES)

    # One image is enlarged, one is shrunk, one is cut.
    sizes = [[9, 20], [37, 61], [90, 40]]
    parts = [part for size in sizes for part in lfm2vl_parts(size, processor)[0]]

    def features(part):
        patches, shape = patches_of(part.astype(np.float32) / 127.5 - 1, patch)
        return model.model.get_image_features(
            torch.from_numpy(patches)[None], spatial_shapes=torch.tensor([shape]),
            pixel_attention_mask=torch.ones(1, len(patches), dtype=torch.int32),
        ).pooler_output[0]  # fmt: skip

    with torch.no_grad():
        features = [features(part) for part in parts]
        prompt = text_of(40, 1)
        for at in range(len(parts)):
            prompt += [-at - 1, *text_of(1 + at % 3, at)]

        def logits(features):
            embed = model.get_input_embeddings()
            rows = [features[-it - 1] if it < 0 else embed(torch.tensor([it])) for it in prompt]
            return model(inputs_embeds=torch.cat(rows)[None], use_cache=False).logits[0].numpy()

        found = logits(features)
        moved = np.abs(found - logits([rows.flip(0) for rows in features]))[-1].max()
        describe("lfm2vl", sizes, features, prompt, found, moved)


GEMMA4_TOKENS = ["<pad>", "<eos>", "<bos>", "<|image>", "<image|>", "<|image|>", "<|turn>", "<turn|>"]
# The roles and images of Gemma 4's own template.
GEMMA4_TEMPLATE = """{{ bos_token }}{% for message in messages %}<|turn>
{{- 'model' if message['role'] == 'assistant' else message['role'] }}
{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for item in message['content'] %}
{%- if item['type'] == 'image' %}<|image|>{% else %}{{ item['text'] }}{% endif %}{% endfor %}{% endif %}<turn|>
{% endfor %}{% if add_generation_prompt %}<|turn>model
{% endif %}"""
# The names of parts of the tower in files.
GEMMA4_NAMES = {
    "input_layernorm": "ln1", "post_attention_layernorm": "attn_post_norm", "pre_feedforward_layernorm": "ln2",
    "post_feedforward_layernorm": "ffn_post_norm", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_out", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}  # fmt: skip


def gemma4_name(key):
    """The name of a tensor of the tower in `mmproj` files."""
    inner = key.removeprefix("model.vision_tower.")
    if inner.startswith("encoder.layers."):
        layer, module = inner.removeprefix("encoder.layers.").split(".", 1)
        module, suffix = module.replace(".linear.", ".").rsplit(".", 1)
        return f"v.blk.{layer}.{GEMMA4_NAMES[module]}.{suffix}"
    return {
        "patch_embedder.input_proj.weight": "v.patch_embd.weight",
        "patch_embedder.position_embedding_table": "v.position_embd.weight",
        "model.embed_vision.embedding_projection.weight": "mm.input_projection.weight",
    }[inner]


def gemma4_features(model, parts, patch):
    """The rows of images, whose patches fill no batch."""
    for part in parts:
        patches, (rows, columns) = patches_of(part.astype(np.float32) / 255, patch)
        places = torch.tensor([[x, y] for y in range(rows) for x in range(columns)])
        found = model.model.get_image_features(torch.from_numpy(patches)[None], image_position_ids=places[None])
        yield found.pooler_output[0]


def gemma4_text(config, state):
    """The file of the text model, and the places of its tensors."""
    text_config, of_text = config.text_config, "model.language_model."
    layers = text_config.num_hidden_layers
    text = Text("gemma4", layers, of_text)
    for key, value in state.items():
        if not key.startswith(of_text):
            continue
        if key.endswith("layer_scalar"):
            text.add(key, value, f"blk.{key.split('.')[3]}.layer_output_scale.weight")
        else:
            text.add(key, value)
    # Only a quarter of the pairs of global layers turns.
    text.tensors["rope_freqs.weight"] = np.array([1.0] * 4 + [1e30] * 12, np.float32)
    file = writer(FOLDER / "gemma4.gguf", "gemma4", "gemma4")
    add_text_keys(file, text_config, text_config.num_key_value_heads)
    file.add_feed_forward_length([text_config.intermediate_size] * layers)
    file.add_layer_norm_rms_eps(text_config.rms_norm_eps)
    file.add_rope_freq_base(1e6)
    file.add_rope_freq_base_swa(1e4)
    file.add_key_length(32)
    file.add_value_length(32)
    file.add_key_length_swa(16)
    file.add_value_length_swa(16)
    file.add_rope_dimension_count(32)
    file.add_rope_dimension_count_swa(16)
    file.add_final_logit_softcapping(text_config.final_logit_softcapping)
    file.add_sliding_window(text_config.sliding_window)
    file.add_sliding_window_pattern([kind == "sliding_attention" for kind in text_config.layer_types])
    file.add_shared_kv_layers(text_config.num_kv_shared_layers)
    file.add_embedding_length_per_layer_input(text_config.hidden_size_per_layer_input)
    write(file, text, ("qwen2", GEMMA4_TOKENS, "<bos>", "<turn|>", True), GEMMA4_TEMPLATE)
    return text


def gemma4():
    """Values per layer, limits of values, images of up to 70 rows."""
    token = tiny_tokenizer.byte_level(GEMMA4_TOKENS)[0].index
    patch, rows = 4, 70
    config = Gemma4Config(
        text_config=SIZES | {
            "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 2, "num_key_value_heads": 1,
            "layer_types": ["sliding_attention", "full_attention"] * 2, "head_dim": 16, "global_head_dim": 32,
            "sliding_window": 24, "final_logit_softcapping": 8.0, "vocab_size_per_layer_input": tiny_tokenizer.VOCAB_SIZE,
            "hidden_size_per_layer_input": 16, "num_kv_shared_layers": 2, "pad_token_id": 0, "tie_word_embeddings": True,
        },
        vision_config={
            "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 3,
            "num_key_value_heads": 3, "head_dim": 16, "patch_size": patch, "position_embedding_size": 256,
            "use_clipped_linears": True,
        },
        audio_config=None, image_token_id=token("<|image|>"), boi_token_id=token("<|image>"),
        eoi_token_id=token("<image|>"), video_token_id=319, audio_token_id=318, tie_word_embeddings=True,
    )  # fmt: skip
    config._attn_implementation = "eager"
    model = Gemma4ForConditionalGeneration(config).float().eval()
    bounds = {"input_min": -1.4, "input_max": 1.1, "output_min": -1.6, "output_max": 1.9}

    def centre(key):
        return 0.7 if key.endswith("layer_scalar") else float(is_norm(key))

    with torch.no_grad():
        state = fill(model, "gemma4", centre)
        for key, value in state.items():
            if (bound := key.rsplit(".", 1)[1]) in bounds:
                value.fill_(bounds[bound])
    text = gemma4_text(config, state)
    text_config, vision = config.text_config, config.vision_config
    file = writer(FOLDER / "gemma4.mmproj.gguf", "clip", "gemma4")
    tensors, places = {}, {}
    forms = {"model.vision_tower.patch_embedder.input_proj.weight": "channels last"}
    for key, value in state.items():
        if "vision" in key:
            name, array = gemma4_name(key), value.numpy()
            tensors[name] = convolution(array, patch) if key in forms else array.reshape(array.shape or (1,))
            places[key] = [name]
    # The keys that the converter writes.
    file.add_type(gguf.GGUFType.MMPROJ)
    file.add_clip_has_vision_encoder(True)
    file.add_clip_vision_projector_type("gemma4v")
    file.add_vision_projection_dim(text_config.hidden_size)
    file.add_vision_image_size(224)
    file.add_vision_patch_size(patch)
    file.add_vision_embedding_length(vision.hidden_size)
    file.add_vision_feed_forward_length(vision.intermediate_size)
    file.add_vision_block_count(vision.num_hidden_layers)
    file.add_vision_head_count(vision.num_attention_heads)
    file.add_vision_attention_layernorm_eps(vision.rms_norm_eps)
    file.add_vision_image_mean([0.0] * 3)
    file.add_vision_image_std([1.0] * 3)
    # Converters leave the key out: it is 280 in all of the family's models.
    file.add_uint32("clip.vision.max_rows", rows)
    add_tensors(file, tensors)
    preprocessor = {"max_soft_tokens": rows, "image_mean": [0.0] * 3, "image_std": [1.0] * 3}
    vision_grids.write_folder("gemma4", config, state, text.places, places, preprocessor, forms=text.forms | forms)

    sizes = [[37, 61], [200, 50]]
    parts = [gemma4_pixels(size, rows, patch) for size in sizes]
    with torch.no_grad():
        features = list(gemma4_features(model, parts, patch))
        image = [config.image_token_id]
        prompt = [token("<bos>"), *text_of(30, 1)]
        for at in range(len(parts)):
            prompt += [token("<|image>"), -at - 1, token("<image|>"), *text_of(3, at)]
        ids = [id for it in prompt for id in ([it] if it >= 0 else image * len(features[-it - 1]))]
        ids = torch.tensor([ids])

        def logits(features):
            output = BaseModelOutputWithPooling(pooler_output=features)
            found = model(ids, mm_encoder_outputs={"image": output}, use_cache=False)
            return found.logits[0].numpy()

        found = logits(features)
        moved = np.abs(found - logits([rows.flip(0) for rows in features]))[-1].max()
        describe("gemma4", sizes, features, prompt, found, moved)
        for layer in model.model.vision_tower.modules():
            if hasattr(layer, "use_clipped_linears"):
                layer.use_clipped_linears = False
        moved = max(float((a - b).abs().max()) for a, b in zip(features, gemma4_features(model, parts, patch)))
        assert moved > 0.3, f"limits move rows by {moved} only"


MODELS = {"qwen35": qwen35, "lfm2vl": lfm2vl, "gemma4": gemma4}


def main():
    torch.set_num_threads(1)
    for name in sys.argv[1:] or MODELS:
        MODELS[name]()
        archive.pack(name)


if __name__ == "__main__":
    main()
