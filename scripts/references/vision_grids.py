"""Makes tests/parity/images: tiny random models with vision towers as llama.cpp's converter would write them, a text
model and an `mmproj` file each, and what transformers computes from their weights in float32.

    VENV/bin/python scripts/references/vision_grids.py [NAME ...]

NAME.json has the `images` (their sizes; the pixels are those of images.py), the `prompt` (token ids, and the index of
an image where one stands, as `[index]`), the `logits` after it, the tokens that are chosen greedily after it (`greedy`)
and the logits after the last of these (`greedy_logits`). NAME.npy has the rows of the images, one after another, each
row with the values for the first layers. NAME.folder.json describes the same model as a Hugging Face folder, as those of
vision.py do; a tensor of the checkpoint may be several of the file, one after another or frame by frame. Most models are one archive (archive.py).
The same names give the same bytes. Images become pixels by Pillow and the
slow processor.
"""

import json
import sys
import zlib
from pathlib import Path

sys.dont_write_bytecode = True

import gguf  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from PIL import Image  # noqa: E402
from transformers import (  # noqa: E402
    PretrainedConfig,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen2VLImageProcessor,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
)

import archive  # noqa: E402
import metadata  # noqa: E402
import names  # noqa: E402
import tiny_tokenizer  # noqa: E402

FOLDER = Path(__file__).parents[2] / "tests/parity/images"
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
            "<|video_pad|>"]  # fmt: skip
TOKENIZER = ("qwen2", SPECIALS, None, "<|im_end|>", False)
TEXTS, _ = tiny_tokenizer.byte_level(SPECIALS)
VISION_START, IMAGE, VIDEO = (TEXTS.index(f"<|{name}|>") for name in ("vision_start", "image_pad", "video_pad"))
PIXELS = {"shortest_edge": 512, "longest_edge": 1536}
# Odd sizes: one that is shrunk, one that is enlarged, one that is rounded.
SIZES = [(77, 43), (9, 20), (20, 50)]
STEPS = 6

TEXT = {
    "vocab_size": tiny_tokenizer.VOCAB_SIZE, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 256,
    "rope_theta": 10000.0, "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
    "bos_token_id": None, "eos_token_id": None, "pad_token_id": None,
}  # fmt: skip


def image(width, height):
    """Gradients with noise, as in images.py."""
    y, x, channel = np.mgrid[0:height, 0:width, 0:3].astype(np.uint64)
    noise = (x * 73 + y * 151 + channel * 199) ** 2 % 97
    return Image.fromarray(((x * 5 + y * 3 + channel * 40 + noise) % 256).astype(np.uint8))


def fill(model, name):
    """Random weights. The same `name` gives the same values."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    for key, parameter in model.named_parameters():
        normal = torch.randn(parameter.shape, generator=generator)
        is_norm = parameter.ndim == 1 and key.endswith(".weight")
        parameter.data = float(is_norm) + normal * deviation(key, parameter)


def deviation(key, parameter):
    if parameter.ndim == 1:
        return 0.2
    if "embed_tokens" in key or "pos_embed" in key:
        return 0.3
    # Makes attention scores spread by a few units.
    sharp = 1.6 if "q_proj" in key or "k_proj" in key or "qkv" in key else 2.0 if "lm_head" in key else 1.2
    return sharp * (parameter.numel() / parameter.shape[0]) ** -0.5


def writer(path, architecture, name):
    file = gguf.GGUFWriter(path, architecture)
    file.add_name(name)
    file.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    file.add_quantization_version(gguf.GGML_QUANT_VERSION)
    return file


def add_tensors(file, tensors):
    """Writes the tensors and the file: matrices as F16, the rest as F32."""
    for name, array in tensors.items():
        array = np.ascontiguousarray(array, np.float32)
        is_plain = array.ndim == 1 or name.endswith(("_norm.weight", "position_embd.weight"))
        file.add_tensor(name, array if is_plain else array.astype(np.float16))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def rounded(state):
    """The weights that the files hold."""
    def of(key, value):
        is_plain = value.ndim == 1 or "pos_embed" in key
        return value if is_plain else value.half().float()
    return {key: of(key, value) for key, value in state.items()}


def write_text(path, architecture, name, config, state, add):
    file = writer(path, architecture, name)
    metadata.add_to_gguf(file, architecture, config)
    add(file)
    tiny_tokenizer.add_to_gguf(file, TOKENIZER)
    prefix = "model.language_model."
    text = {"model." + key[len(prefix):]: value for key, value in state.items() if key.startswith(prefix)}
    text["lm_head.weight"] = state["lm_head.weight"]
    places = {key: [names.place(architecture, config, key).name] for key in text}
    tensors = names.to_gguf(architecture, config, {key: value.numpy() for key, value in text.items()})
    add_tensors(file, tensors)
    return places


# Members of the configurations of all models, which say nothing about these.
COMMON = PretrainedConfig().to_dict().keys() - {"tie_word_embeddings", "model_type"}


def members(config):
    return {key: value for key, value in config.to_dict().items() if key not in COMMON and value is not None}


def write_folder(name, config, state, text, tower, pixels, is_flat=False, forms=()):
    """`text` and `tower` are the tensors of the files that a tensor of the checkpoint becomes. Folders that were published
    first are flat: the text model's configuration is not in an object, and names have fewer prefixes."""
    json_config = members(config)
    json_config["text_config"], json_config["vision_config"] = members(config.text_config), members(config.vision_config)
    key_of = lambda key: key  # noqa: E731
    if is_flat:
        text_config = json_config.pop("text_config")
        json_config = text_config | json_config
        json_config["rope_scaling"] = {"type": "mrope", "mrope_section": config.text_config.rope_scaling["mrope_section"]}
        key_of = lambda key: key.replace("model.language_model.", "model.").replace("model.visual.", "visual.")  # noqa: E731
    tensors = {}
    for key, value in state.items():
        inner = key.replace("model.language_model.", "model.")
        if key not in tower and inner not in text:
            # Tied to another one.
            continue
        at = int(key in tower)
        place = tower[key] if at else text[inner]
        form = dict(forms).get(key, "frames" if value.ndim == 5 else "as it is")
        tensors[key_of(key)] = [at, place, form, 0, list(value.shape)]
    preprocessor = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    if is_flat:
        preprocessor |= {"min_pixels": pixels["shortest_edge"], "max_pixels": pixels["longest_edge"]}
    elif "longest_edge" in pixels:
        preprocessor["size"] = pixels
    else:
        preprocessor |= pixels
    document = {"config.json": json_config, "preprocessor_config.json": preprocessor, "tensors": tensors}
    (FOLDER / f"{name}.folder.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")


def add_vision(file, projector, vision, dim, eps, pixels=tuple(PIXELS.values())):
    """The keys that all towers have."""
    file.add_type(gguf.GGUFType.MMPROJ)
    file.add_clip_has_vision_encoder(True)
    file.add_clip_projector_type(projector)
    file.add_vision_projection_dim(dim)
    file.add_vision_patch_size(vision.patch_size)
    file.add_vision_embedding_length(vision.hidden_size)
    file.add_vision_feed_forward_length(vision.intermediate_size)
    file.add_vision_block_count(vision.depth)
    file.add_vision_head_count(vision.num_heads)
    file.add_vision_attention_layernorm_eps(eps)
    file.add_vision_image_mean([0.5, 0.5, 0.5])
    file.add_vision_image_std([0.5, 0.5, 0.5])
    file.add_vision_spatial_merge_size(vision.spatial_merge_size)
    file.add_vision_min_pixels(pixels[0])
    file.add_vision_max_pixels(pixels[1])


QWEN3VL_NAMES = {
    "norm1": "ln1", "norm2": "ln2", "attn.qkv": "attn_qkv", "attn.proj": "attn_out",
    "mlp.linear_fc1": "ffn_up", "mlp.linear_fc2": "ffn_down",
}  # fmt: skip


def qwen3vl_tower(state, indexes):
    """The tensors of the tower, and those of the checkpoint that each is."""
    tensors, places = {}, {}
    for key, value in state.items():
        if not key.startswith("model.visual."):
            continue
        module, suffix = key[len("model.visual."):].rsplit(".", 1)
        value = value.numpy()
        parts = module.split(".", 2)
        if key.endswith("patch_embed.proj.weight"):
            tensors["v.patch_embd.weight"] = value[:, :, 0]
            tensors["v.patch_embd.weight.1"] = value[:, :, 1]
            places[key] = list(tensors)[-2:]
            continue
        elif module == "patch_embed.proj":
            tensors["v.patch_embd.bias"] = value
        elif module == "pos_embed":
            tensors["v.position_embd.weight"] = value
        elif parts[0] == "blocks":
            tensors[f"v.blk.{parts[1]}.{QWEN3VL_NAMES[parts[2]]}.{suffix}"] = value
        elif parts[0] == "merger":
            name = {"norm": "v.post_ln", "linear_fc1": "mm.0", "linear_fc2": "mm.2"}[parts[1]]
            tensors[f"{name}.{suffix}"] = value
        else:
            part = parts[2].removeprefix("linear_")
            tensors[f"v.deepstack.{indexes[int(parts[1])]}.{part}.{suffix}"] = value
        places[key] = list(tensors)[-1:]
    return tensors, places


def qwen3vl():
    config = Qwen3VLConfig(
        text_config=TEXT | {"rope_scaling": {"rope_type": "default", "mrope_section": [4, 2, 2],
                                             "mrope_interleaved": True}},
        vision_config={
            "depth": 3, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "patch_size": 4,
            "out_hidden_size": 64, "num_position_embeddings": 25, "deepstack_visual_indexes": [0, 2],
        },
        image_token_id=IMAGE, video_token_id=VIDEO, vision_start_token_id=VISION_START,
        tie_word_embeddings=False,
    )  # fmt: skip
    config._attn_implementation = "eager"
    model = Qwen3VLForConditionalGeneration(config).float().eval()
    fill(model, "qwen3vl, 3")
    model.load_state_dict(rounded(model.state_dict()))
    state = model.state_dict()
    text, vision = config.text_config, config.vision_config

    def add(file):
        file.add_rope_dimension_sections([4, 2, 2, 0])
        file.add_num_deepstack_layers(2)

    text_places = write_text(FOLDER / "qwen3vl.gguf", "qwen3vl", "qwen3vl", text, state, add)
    file = writer(FOLDER / "qwen3vl.mmproj.gguf", "clip", "qwen3vl")
    add_vision(file, "qwen3vl_merger", vision, text.hidden_size, 1e-6)
    file.add_vision_image_size(5 * vision.patch_size)
    file.add_vision_use_gelu(True)
    file.add_vision_is_deepstack_layers([layer in (0, 2) for layer in range(3)])
    tensors, places = qwen3vl_tower(state, [0, 2])
    add_tensors(file, tensors)
    write_folder("qwen3vl", config, state, text_places, places, PIXELS)

    def features(pixels, grid):
        rows, deep = model.model.visual(pixels, grid_thw=grid)
        return torch.cat([rows, *deep], dim=1)

    refer("qwen3vl", model, 4, features, PIXELS)


def qwen2_tower(state, depth):
    """The tensors of the towers of Qwen2-VL and Qwen2.5-VL, by the names that the converter looks up, and those of the
    checkpoint that each is."""
    table = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, depth)
    tensors, places = {}, {}
    for key, value in state.items():
        if not key.startswith("model.visual."):
            continue
        value = value.numpy()
        if key.endswith("patch_embed.proj.weight"):
            tensors["v.patch_embd.weight"] = value[:, :, 0]
            tensors["v.patch_embd.weight.1"] = value[:, :, 1]
            places[key] = list(tensors)[-2:]
            continue
        parts = {key: value}
        if ".qkv." in key:
            parts = {key.replace("qkv", part): rows for part, rows in zip("qkv", np.split(value, 3))}
        for part, rows in parts.items():
            found = table.get_name(part.removeprefix("model."), try_suffixes=(".weight", ".bias"))
            assert found, part
            tensors[found] = rows
        places[key] = list(tensors)[-len(parts):]
    return tensors, places


def qwen2_text(sections):
    text = {key: value for key, value in TEXT.items() if key != "head_dim"}
    return text | {"rope_scaling": {"type": "mrope", "mrope_section": sections}}


def qwen2(name, model, config, projector, add_keys, rows, is_flat):
    """A model of Qwen2-VL or Qwen2.5-VL: its files and references."""
    sections = config.text_config.rope_scaling["mrope_section"]
    config._attn_implementation = "eager"
    model.load_state_dict(rounded(model.state_dict()))
    state = model.state_dict()
    text, vision = config.text_config, config.vision_config

    def add(file):
        file.add_rope_dimension_sections([*sections, 0])

    text_places = write_text(FOLDER / f"{name}.gguf", "qwen2vl", name, text, state, add)
    file = writer(FOLDER / f"{name}.mmproj.gguf", "clip", name)
    # The keys that the converter writes: bounds of pixels and the size of squares are not among them.
    file.add_type(gguf.GGUFType.MMPROJ)
    file.add_clip_has_vision_encoder(True)
    file.add_clip_projector_type(projector)
    file.add_vision_projection_dim(text.hidden_size)
    file.add_vision_image_size(560)
    file.add_vision_patch_size(vision.patch_size)
    file.add_vision_block_count(vision.depth)
    file.add_vision_head_count(vision.num_heads)
    file.add_vision_attention_layernorm_eps(1e-6)
    file.add_vision_image_mean([0.5] * 3)
    file.add_vision_image_std([0.5] * 3)
    add_keys(file, vision)
    tensors, places = qwen2_tower(state, vision.depth)
    add_tensors(file, tensors)
    # 4 to 1,024 rows.
    square = (2 * vision.patch_size) ** 2
    pixels = {"shortest_edge": 4 * square, "longest_edge": 1024 * square}
    write_folder(name, config, state, text_places, places, pixels, is_flat)
    refer(name, model, vision.patch_size, rows, pixels)


def qwen2vl():
    config = Qwen2VLConfig(
        text_config=qwen2_text([2, 3, 3]),
        # The hidden size is the text model's.
        vision_config={"depth": 3, "embed_dim": 32, "hidden_size": 64, "mlp_ratio": 3, "num_heads": 2, "patch_size": 4,
                       "hidden_act": "quick_gelu"},
        image_token_id=IMAGE, video_token_id=VIDEO, vision_start_token_id=VISION_START, tie_word_embeddings=False,
    )  # fmt: skip
    model = Qwen2VLForConditionalGeneration(config).float().eval()
    fill(model, "qwen2vl, 3")

    def add(file, vision):
        file.add_vision_embedding_length(vision.embed_dim)
        # The width that the converter writes, from the configuration. The tensors are wider.
        file.add_vision_feed_forward_length(vision.hidden_size)

    def rows(pixels, grid):
        return model.model.visual(pixels, grid_thw=grid)

    qwen2("qwen2vl", model, config, "qwen2vl_merger", add, rows, is_flat=True)


def qwen25vl():
    """Windows of three squares of patches, which fill no page, in the first and in the third layer."""
    config = Qwen2_5_VLConfig(
        text_config=qwen2_text([4, 2, 2]),
        vision_config={"depth": 4, "hidden_size": 32, "intermediate_size": 68, "num_heads": 2, "patch_size": 4,
                       "out_hidden_size": 64, "fullatt_block_indexes": [1, 3], "window_size": 24},
        image_token_id=IMAGE, video_token_id=VIDEO, vision_start_token_id=VISION_START, tie_word_embeddings=False,
    )  # fmt: skip
    model = Qwen2_5_VLForConditionalGeneration(config).float().eval()
    fill(model, "qwen25vl")

    def add(file, vision):
        file.add_vision_embedding_length(vision.hidden_size)
        file.add_vision_feed_forward_length(vision.intermediate_size)
        file.add_vision_use_silu(True)
        file.add_vision_n_wa_pattern(2)
        # The converter leaves it out: it is 112 in all of the family's models.
        file.add_uint32("clip.vision.window_size", vision.window_size)

    def rows(pixels, grid):
        tower = model.model.visual
        rows = tower(pixels, grid_thw=grid)
        tower.fullatt_block_indexes = [0, 1, 2, 3]
        moved = (tower(pixels, grid_thw=grid) - rows).abs().amax(dim=1)
        tower.fullatt_block_indexes = [1, 3]
        # The first image is larger than a window.
        assert moved[:50].min() > 0.05, f"windows move rows by {moved[:50].min()}"
        return rows

    qwen2("qwen25vl", model, config, "qwen2.5vl_merger", add, rows, is_flat=False)


def describe(name, images, counts, prompt, logits):
    """Writes the references of a prompt; `logits` are those after tokens that follow it."""
    last = first = logits([])[-1]
    greedy, margins = [], []
    for _ in range(STEPS):
        greedy.append(int(last.argmax()))
        margins.append(float(np.ptp(np.sort(last)[-2:])))
        last = logits(greedy)[-1]
    print(name, "margins", margins, "greedy", greedy)
    short = lambda values: [float(f"{value:.6g}") for value in values]  # noqa: E731
    document = {
        "images": images, "counts": counts, "prompt": prompt, "logits": short(first), "greedy": greedy,
        "greedy_logits": short(last),
    }  # fmt: skip
    (FOLDER / f"{name}.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")


def refer(name, model, patch_size, features, pixels, has_token_types=False):
    """Writes the references; `pixels` bounds those of an image. Later versions of transformers want to know which tokens are images."""
    processor = Qwen2VLImageProcessor(
        patch_size=patch_size, merge_size=2, min_pixels=pixels["shortest_edge"], max_pixels=pixels["longest_edge"],
        image_mean=[0.5] * 3, image_std=[0.5] * 3,
    )  # fmt: skip
    found = processor([image(*size) for size in SIZES], return_tensors="pt")
    pixels, grid = found["pixel_values"], found["image_grid_thw"]
    generator = np.random.default_rng(7)
    text = lambda count: generator.integers(0, 250, count).tolist()  # noqa: E731
    end = TEXTS.index("<|vision_end|>")
    # The second and the third image follow each other at once.
    prompt = [*text(40), VISION_START, [0], end, *text(4), VISION_START, [1], end, VISION_START, [2], end, *text(5)]
    counts = (grid.prod(dim=1) // 4).tolist()
    ids = []
    for item in prompt:
        ids += [IMAGE] * counts[item[0]] if isinstance(item, list) else [item]

    def logits(ids):
        tokens = torch.tensor([ids])
        types = {"mm_token_type_ids": (tokens == IMAGE).int()} if has_token_types else {}
        return model(tokens, attention_mask=torch.ones_like(tokens), pixel_values=pixels, image_grid_thw=grid,
                     use_cache=False, **types).logits[0].numpy()  # fmt: skip

    with torch.no_grad():
        rows = features(pixels, grid).numpy()
        describe(name, SIZES, counts, prompt, lambda more: logits(ids + more))
        assert_sensitive(model, ids, logits(ids)[-1], logits)
    np.save(FOLDER / f"{name}.npy", rows.astype(np.float32))


def assert_sensitive(model, ids, expected, logits):
    """Checks that positions and values for the first layers show in the logits."""
    rope_index = model.model.get_rope_index

    def plain(input_ids, *args, **kwargs):
        positions = torch.arange(input_ids.shape[1]).expand(3, 1, -1)
        return positions, torch.zeros(1, 1, dtype=torch.long)

    model.model.get_rope_index = plain
    moved = np.abs(logits(ids)[-1] - expected).max()
    model.model.get_rope_index = rope_index
    assert moved > 0.3, f"plain positions move logits by {moved}"
    language = model.model.language_model
    if hasattr(language, "_deepstack_process"):
        process = language._deepstack_process
        language._deepstack_process = lambda hidden, *_: hidden
        moved = np.abs(logits(ids)[-1] - expected).max()
        language._deepstack_process = process
        assert moved > 0.3, f"no values for the first layers move logits by {moved}"


MODELS = {"qwen3vl": qwen3vl, "qwen2vl": qwen2vl, "qwen25vl": qwen25vl}


def main():
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or MODELS:
        MODELS[name]()
        archive.pack(name)


if __name__ == "__main__":
    main()
