"""Makes tests/parity/images: tiny random models that take images, as GGUF files as llama.cpp's converter would write
them (NAME.gguf, NAME.mmproj.gguf), and what transformers computes in float32 from the weights of the files (NAME.json).
NAME.folder.json describes the same model as a Hugging Face folder: its JSON files, and for each tensor of the checkpoint
the file (0 or 1), the name and the form there, the number of interleaved heads, and the shape in the checkpoint.
Most models are one archive (archive.py).

    VENV/bin/python scripts/references/vision.py [NAME ...]

A reference has images as their widths and heights (`image` of images.py makes the pixels), the rows that each
of their parts becomes, a prompt whose negative ids stand for parts, and the logits after it.
"""

import json
import re
import sys
import zlib
from functools import partial
from pathlib import Path

sys.dont_write_bytecode = True

import gguf  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from PIL import Image  # noqa: E402
from transformers import (  # noqa: E402
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    Gemma3ImageProcessor,
    SmolVLMConfig,
    SmolVLMForConditionalGeneration,
    SmolVLMImageProcessor,
)

import archive  # noqa: E402
import metadata  # noqa: E402
import names  # noqa: E402
import tiny_tokenizer  # noqa: E402
from images import image  # noqa: E402

FOLDER = Path(__file__).parents[2] / "tests/parity/images"
GEMMA3_TOKENS = ["<pad>", "<eos>", "<bos>", "<start_of_image>", "<end_of_image>", "<image_soft_token>",
                 "<start_of_turn>", "<end_of_turn>"]  # fmt: skip
# The roles and images of Gemma 3's own template.
GEMMA3_TEMPLATE = """{{ bos_token }}{% for message in messages %}<start_of_turn>
{{ 'model' if message['role'] == 'assistant' else message['role'] }}
{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for item in message['content'] %}
{%- if item['type'] == 'image' %}<start_of_image>{% else %}{{ item['text'] }}{% endif %}{% endfor %}{% endif %}
<end_of_turn>
{% endfor %}{% if add_generation_prompt %}<start_of_turn>model
{% endif %}"""


# The roles and images of SmolVLM's own template.
IDEFICS3_TEMPLATE = """<s>{% for message in messages %}{{ message['role'] | capitalize }}: {% if message['content'] is string %}
{{- message['content'] }}{% else %}{% for item in message['content'] %}
{%- if item['type'] == 'image' %}<image>{% else %}{{ item['text'] }}{% endif %}{% endfor %}{% endif %}
{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"""


def fill(model, name):
    """Random weights; `name` decides which. Attention is far from uniform."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    for key, parameter in model.named_parameters():
        normal = torch.randn(parameter.shape, generator=generator)
        is_norm = "norm" in key and key.endswith("weight")
        adds_one = "language_model" in key or "soft_emb_norm" in key
        centre = 1.0 if is_norm and not adds_one else 0.0
        fan_in = parameter[0].numel() if parameter.ndim > 1 else 1
        if "mm_input_projection" in key:
            fan_in = parameter.shape[0]
        if parameter.ndim == 1:
            deviation = 0.2
        elif "embed_tokens" in key or "position_embedding" in key:
            deviation = 0.3
        else:
            sharp = any(part in key for part in ["q_proj", "k_proj"])
            deviation = (1.6 if sharp else 1.2) * fan_in**-0.5
        parameter.data = centre + deviation * normal
    model.tie_weights()


class File:
    """A file and the tensors of a checkpoint that it holds."""

    def __init__(self, path, architecture, kind, name):
        self.path, self.places, self.arrays = path, {}, {}
        self.writer = gguf.GGUFWriter(path, architecture)
        self.writer.add_type(kind)
        self.writer.add_name(name)
        self.writer.add_quantization_version(gguf.GGML_QUANT_VERSION)

    def add(self, key, name, array, kind, place=names.Place("", None, "as it is")):
        """Adds a tensor of the checkpoint in the form of `place`."""
        shape, array = array.shape, place.to_gguf(array)
        kind = gguf.GGMLQuantizationType[kind]
        array = np.ascontiguousarray(array, np.float32)
        self.writer.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)
        self.places[key] = (name, place, shape)

    def finish(self):
        """Writes the file. Returns the tensors of the checkpoint as the file has them."""
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()
        tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(self.path).tensors}
        state = {}
        for key, (name, place, _) in self.places.items():
            tensor = tensors[name]
            array = np.asarray(gguf.quants.dequantize(tensor.data, tensor.tensor_type), np.float32)
            shape = [int(n) for n in reversed(tensor.shape)]
            state[key] = torch.from_numpy(np.array(place.from_gguf(array.reshape(shape))))
        return state


def write_text(name, architecture, config, state, tokenizer, template):
    """The file of the text model; `state` has the names of a model without images."""
    file = File(FOLDER / f"{name}.gguf", architecture, gguf.GGUFType.MODEL, name)
    metadata.add_to_gguf(file.writer, architecture, config)
    tiny_tokenizer.add_to_gguf(file.writer, tokenizer)
    file.writer.add_chat_template(template)
    for key, value in state.items():
        place = names.place(architecture, config, key)
        if place is None:
            continue
        array = value.numpy()
        kind = names.stored_type(place.name, array, "F16")
        file.add(key, place.name, array, kind.name, place)
    return file.finish(), file.places


def write_tower(name, projector, config, dim, state, layer_norm_eps, side, renamed=lambda name: name, **keys):
    """The file of the tower and the projector. `state` has its tensors by names that gguf knows."""
    file = File(FOLDER / f"{name}.mmproj.gguf", "clip", gguf.GGUFType.MMPROJ, name)
    half = [0.5, 0.5, 0.5]
    add_tower_keys(file.writer, config, projector, dim, half, half)
    file.writer.add_vision_attention_layernorm_eps(layer_norm_eps)
    file.writer.add_vision_use_gelu(True)
    file.writer.add_vision_projector_scale_factor(side)
    for key, value in keys.items():
        file.writer.add_uint32(f"clip.vision.{key}", value)
    for key, (known, value) in state.items():
        array = value.numpy()
        kind = "F16" if array.ndim > 1 and "embeddings" not in key else "F32"
        form = "plus one" if "soft_emb_norm" in key else "as it is"
        file.add(key, renamed(tower_name(known, config.num_hidden_layers)), array, kind, names.Place("", None, form))
    return file.finish(), file.places


def write_folder(name, config, preprocessor, text, tower):
    """Describes the folder; `text` and `tower` are places by the names of the checkpoint."""
    tensors = {
        key: [at, place[0], place[1].form, place[1].heads, list(place[2])]
        for at, places in enumerate([text, tower])
        for key, place in places.items()
    }
    document = {
        "config.json": json.loads(config.to_json_string(use_diff=False)),
        "preprocessor_config.json": preprocessor, "tensors": tensors,
    }  # fmt: skip
    (FOLDER / f"{name}.folder.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")


def tower_name(key, layers):
    table = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, layers)
    found = table.get_name(key, try_suffixes=(".weight", ".bias"))
    assert found, key
    return found


def add_tower_keys(writer, config, projector, width, mean, std):
    writer.add_clip_has_vision_encoder(True)
    writer.add_clip_projector_type(projector)
    writer.add_vision_projection_dim(width)
    writer.add_vision_image_size(config.image_size)
    writer.add_vision_patch_size(config.patch_size)
    writer.add_vision_embedding_length(config.hidden_size)
    writer.add_vision_feed_forward_length(config.intermediate_size)
    writer.add_vision_block_count(config.num_hidden_layers)
    writer.add_vision_head_count(config.num_attention_heads)
    writer.add_vision_image_mean(mean)
    writer.add_vision_image_std(std)


def rounded(values):
    return [float(f"{value:.6g}") for value in np.asarray(values).flatten()]


def write_reference(name, sizes, features, prompt, logits, moved):
    """`moved` is how far the logits are without the parts of the model that are tested."""
    assert moved > 0.3, f"{name}: logits are moved by {moved} only"
    document = {
        "images": sizes,
        "features": [rounded(rows) for rows in features],
        "prompt": prompt,
        "last_logits": rounded(logits[-1]),
        "greedy_next": logits.argmax(axis=1).tolist(),
    }
    text = json.dumps(document, separators=(",", ":"))
    (FOLDER / f"{name}.json").write_text(text + "\n")
    spread = np.std(logits)
    print(f"{name}: logits spread by {spread:.2f}, moved by {moved:.2f}; rows spread by {np.std(features[0]):.2f}")


def text_of(count, seed):
    """Ids of texts."""
    generator = np.random.default_rng(seed)
    return generator.integers(270, 280, count).tolist()


def gemma3(name):
    """Images of 25 rows, of which each sees all; a window that is not much longer."""
    token = GEMMA3_TOKENS.index
    rows = 25
    config = Gemma3Config(
        text_config={
            "vocab_size": tiny_tokenizer.VOCAB_SIZE, "hidden_size": 32, "intermediate_size": 64,
            "num_hidden_layers": 6, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
            "query_pre_attn_scalar": 16, "sliding_window": 32, "max_position_embeddings": 512,
            "rope_scaling": {"rope_type": "linear", "factor": 8.0},
        },
        vision_config={
            "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 3,
            "image_size": 100, "patch_size": 10, "vision_use_head": False,
        },
        mm_tokens_per_image=rows, boi_token_index=token("<start_of_image>"),
        eoi_token_index=token("<end_of_image>"), image_token_index=token("<image_soft_token>"),
        attn_implementation="eager",
    )  # fmt: skip
    model = Gemma3ForConditionalGeneration(config).eval()
    fill(model, name)
    state = model.state_dict()
    of_text = "model.language_model."
    text_tensors = {"model." + key.removeprefix(of_text): value for key, value in state.items() if of_text in key}
    tokenizer = ("spm", GEMMA3_TOKENS, "<bos>", "<eos>", True)
    text_tensors, text_places = write_text(name, "gemma3", config.text_config, text_tensors, tokenizer, GEMMA3_TEMPLATE)
    loaded = {of_text + key.removeprefix("model."): value for key, value in text_tensors.items()}
    text_places = {"language_model." + key: place for key, place in text_places.items()}
    vision = config.vision_config
    tower = {
        key: (key.removeprefix("model.").replace("_weight", ".weight"), value)
        for key, value in state.items()
        if of_text not in key and key != "lm_head.weight"
    }
    # As in the files that converters made for years.
    swapped = {"ffn_up": "ffn_down", "ffn_down": "ffn_up"}
    renamed = lambda key: re.sub("ffn_(up|down)", lambda found: swapped[found[0]], key)  # noqa: E731
    tower, tower_places = write_tower(
        name, "gemma3", vision, config.text_config.hidden_size, tower, vision.layer_norm_eps, 2, renamed,
    )  # fmt: skip
    # The names of published folders.
    tower_places = {key.removeprefix("model."): place for key, place in tower_places.items()}
    write_folder(name, config, {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}, text_places, tower_places)
    loaded |= tower
    missing, unexpected = model.load_state_dict(loaded, strict=False)
    assert missing == ["lm_head.weight"] and not unexpected, (missing, unexpected)
    model.tie_weights()

    sizes = [[37, 61], [200, 50]]
    processor = Gemma3ImageProcessor(size={"height": 100, "width": 100})
    images = [Image.fromarray(image(*size)) for size in sizes]
    pixels = processor(images, return_tensors="pt")["pixel_values"]
    begin, end = token("<start_of_image>"), token("<end_of_image>")
    # The first image lies across the end of a page.
    prompt = [token("<bos>"), *text_of(48, 1), begin, -1, end, *text_of(3, 2), begin, -2, end, *text_of(19, 3)]
    ids = [id for it in prompt for id in ([it] if it >= 0 else [token("<image_soft_token>")] * rows)]
    ids = torch.tensor([ids])
    is_row = (ids == token("<image_soft_token>")).long()
    with torch.no_grad():
        features = model.get_image_features(pixels).numpy()
        logits = model(ids, pixel_values=pixels, token_type_ids=is_row, use_cache=False).logits[0].numpy()
        causal = model(ids, pixel_values=pixels, token_type_ids=0 * is_row, use_cache=False).logits[0].numpy()
    write_reference(name, sizes, features, prompt, logits, np.abs(logits - causal)[-1].max())


def embedded(embeddings, pixel_values, patch_attention_mask):
    """The embeddings of patches of whole images. transformers 4.57 gives most patches the position of the one before:
    it multiplies their places by 1 - 1e-6. The versions that models were trained with do not, nor does llama.cpp."""
    assert patch_attention_mask.all()
    patches = embeddings.patch_embedding(pixel_values).flatten(2).transpose(1, 2)
    return patches + embeddings.position_embedding.weight


def idefics3(name):
    """As SmolVLM: images that are cut into tiles of 16 rows each."""
    specials = ["<unk>", "<s>", "</s>", "<image>", "<fake_token_around_image>", "<global-img>"]
    strings, _ = tiny_tokenizer.byte_level(specials)
    image_token = strings.index("<image>")
    config = SmolVLMConfig(
        text_config={
            "model_type": "llama", "vocab_size": tiny_tokenizer.VOCAB_SIZE, "hidden_size": 32,
            "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
            "head_dim": 16, "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "pad_token_id": 0,
            "tie_word_embeddings": False,
        },
        vision_config={
            "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 3,
            "image_size": 64, "patch_size": 8,
        },
        scale_factor=2, image_token_id=image_token, pad_token_id=0, tie_word_embeddings=False,
        attn_implementation="eager",
    )  # fmt: skip
    model = SmolVLMForConditionalGeneration(config).eval()
    embeddings = model.model.vision_model.embeddings
    embeddings.forward = partial(embedded, embeddings)
    fill(model, name)
    state = model.state_dict()
    of_text = "model.text_model."
    text_state = {"model." + key.removeprefix(of_text): value for key, value in state.items() if of_text in key}
    text_state["lm_head.weight"] = state["lm_head.weight"]
    tokenizer = ("gpt-2", specials, "<s>", "</s>", False)
    text, text_places = write_text(name, "llama", config.text_config, text_state, tokenizer, IDEFICS3_TEMPLATE)

    def outer(key):
        return key if key == "lm_head.weight" else of_text + key.removeprefix("model.")

    loaded = {outer(key): value for key, value in text.items()}
    text_places = {outer(key): place for key, place in text_places.items()}
    vision = config.vision_config
    tower = {
        key: (key.replace("model.vision_model.", "vision_tower.vision_model."), value)
        for key, value in state.items()
        if of_text not in key and key != "lm_head.weight"
    }
    tower, tower_places = write_tower(
        name, "idefics3", vision, 32, tower, vision.layer_norm_eps, 2, preproc_image_size=128,
    )  # fmt: skip
    preprocessor = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "size": {"longest_edge": 128}}
    write_folder(name, config, preprocessor, text_places, tower_places)
    missing, unexpected = model.load_state_dict(loaded | tower, strict=False)
    assert not missing and not unexpected, (missing, unexpected)

    sizes = [[37, 61], [150, 40]]
    processor = SmolVLMImageProcessor(
        do_image_splitting=True, size={"longest_edge": 128}, max_image_size={"longest_edge": 64}, do_pad=False,
    )  # fmt: skip
    tiles = [processor(Image.fromarray(image(*size)), return_tensors="pt")["pixel_values"] for size in sizes]
    pixels = torch.cat(tiles, dim=1)
    prompt = text_of(20, 1)
    for at in range(pixels.shape[1]):
        prompt += [-at - 1, *text_of(1 + at % 3, at)]
    ids = torch.tensor([[id for it in prompt for id in ([it] if it >= 0 else [image_token] * 16)]])
    with torch.no_grad():
        features = model.model.get_image_features(pixels).numpy()
        logits = model(ids, pixel_values=pixels, use_cache=False).logits[0].numpy()
        others = model(ids, pixel_values=pixels.flip(1), use_cache=False).logits[0].numpy()
    write_reference(name, sizes, features, prompt, logits, np.abs(logits - others)[-1].max())


MODELS = {"gemma3": gemma3, "idefics3": idefics3}


def main(wanted):
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name in wanted or MODELS:
        MODELS[name](name)
        archive.pack(name)


main(sys.argv[1:])
