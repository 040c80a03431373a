"""Writes a model in the shape of SmolVLM-256M with random weights, for `npm run bench -- --projector`: the same weights as
GGUF files (FOLDER/NAME.gguf, FOLDER/mmproj-NAME.gguf) and as a folder of transformers.js (FOLDER/NAME). NAME is smolvlm-12-30:
the layers of the tower and of the text model.

    VENV/bin/python scripts/references/smolvlm_shape.py FOLDER [--tower-layers 12] [--text-layers 30] [--vocab 49280]

Needs onnx, onnxruntime and onnxruntime-genai 0.11 (later ones need a later transformers) besides requirements.txt. An image
is one tile of 512 by 512 pixels, 1024 patches and 64 tokens: images are not split. Matrices of the text model have 4 bits
in blocks of 32 in both forms; the tower has F16, or another type with --tower-type, in the GGUF file, and f32 in the folder.
"""

import argparse
import json
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.dont_write_bytecode = True

import gguf  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import torch  # noqa: E402
from onnxruntime_genai.models.builder import create_model  # noqa: E402
from transformers import LlamaForCausalLM, SmolVLMConfig, SmolVLMForConditionalGeneration  # noqa: E402

import metadata  # noqa: E402
import names  # noqa: E402
import tiny_tokenizer  # noqa: E402

SIZE = 512
SPECIALS = ["<unk>", "<s>", "</s>", "<image>", "<fake_token_around_image>", "<global-img>"]


def config_of(args, image):
    return SmolVLMConfig(
        text_config={
            "model_type": "llama", "vocab_size": args.vocab, "hidden_size": 576, "intermediate_size": 1536,
            "num_hidden_layers": args.text_layers, "num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 64,
            "max_position_embeddings": 8192, "rope_theta": 100000.0, "rms_norm_eps": 1e-5, "pad_token_id": 0,
            "tie_word_embeddings": False,
        },
        vision_config={
            "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": args.tower_layers,
            "num_attention_heads": 12, "image_size": SIZE, "patch_size": 16,
        },
        scale_factor=4, image_token_id=image, pad_token_id=0, tie_word_embeddings=False,
    )  # fmt: skip


def write_gguf(path, name, architecture, kind, add_keys, tensors):
    """`tensors` yields a name, an array and the name of a type."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_type(kind)
    writer.add_name(name)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    add_keys(writer)
    for key, array, type_name in tensors:
        tensor_type = gguf.GGMLQuantizationType[type_name]
        data = gguf.quants.quantize(np.ascontiguousarray(array, np.float32), tensor_type)
        writer.add_tensor(key, data, raw_dtype=tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_text_gguf(folder, name, config, state):
    def add_keys(writer):
        metadata.add_to_gguf(writer, "llama", config)
        tiny_tokenizer.add_to_gguf(writer, ("gpt-2", SPECIALS, "<s>", "</s>", False))

    def tensors():
        for key, value in state.items():
            place = names.place("llama", config, key)
            yield place.name, place.to_gguf(value.numpy()), "Q4_0" if value.ndim > 1 else "F32"

    write_gguf(folder / f"{name}.gguf", name, "llama", gguf.GGUFType.MODEL, add_keys, tensors())


def write_tower_gguf(folder, name, tower_type, config, state):
    vision = config.vision_config

    def add_keys(writer):
        writer.add_clip_has_vision_encoder(True)
        writer.add_clip_projector_type("idefics3")
        writer.add_vision_projection_dim(config.text_config.hidden_size)
        writer.add_vision_image_size(SIZE)
        writer.add_vision_patch_size(vision.patch_size)
        writer.add_vision_embedding_length(vision.hidden_size)
        writer.add_vision_feed_forward_length(vision.intermediate_size)
        writer.add_vision_block_count(vision.num_hidden_layers)
        writer.add_vision_head_count(vision.num_attention_heads)
        writer.add_vision_image_mean([0.5] * 3)
        writer.add_vision_image_std([0.5] * 3)
        writer.add_vision_attention_layernorm_eps(vision.layer_norm_eps)
        writer.add_vision_use_gelu(True)
        writer.add_vision_projector_scale_factor(config.scale_factor)
        # Not larger than the tower's size, so that an image is one tile.
        writer.add_uint32("clip.vision.preproc_image_size", SIZE)

    table = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, vision.num_hidden_layers)

    def tensors():
        for key, value in state.items():
            known = key.replace("model.vision_model.", "vision_tower.vision_model.")
            place = table.get_name(known, try_suffixes=(".weight", ".bias"))
            is_matrix = value.ndim > 1 and "embeddings" not in key
            yield place, value.numpy(), tower_type if is_matrix else "F32"

    path = folder / f"mmproj-{name}.gguf"
    write_gguf(path, name, "clip", gguf.GGUFType.MMPROJ, add_keys, tensors())


def embedded(embeddings, pixel_values, patch_attention_mask=None):
    """The embeddings of the patches of a whole image, each at its own place."""
    patches = embeddings.patch_embedding(pixel_values).flatten(2).transpose(1, 2)
    return patches + embeddings.position_embedding.weight


class Tower(torch.nn.Module):
    """The tower and the projector, for one tile."""

    def __init__(self, model):
        super().__init__()
        self.vision, self.connector = model.model.vision_model, model.model.connector

    def forward(self, pixel_values):
        patches = embedded(self.vision.embeddings, pixel_values[0])
        states = self.vision.encoder(inputs_embeds=patches).last_hidden_state
        return self.connector(self.vision.post_layernorm(states))


class Embedding(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.tokens = model.model.text_model.embed_tokens

    def forward(self, input_ids):
        return self.tokens(input_ids)


def write_onnx(folder, name, model, config, text_state):
    files = folder / name / "onnx"
    files.mkdir(parents=True, exist_ok=True)
    export = partial(torch.onnx.export, opset_version=20, dynamo=False)
    vision = files / "vision_encoder.onnx"
    pixels = torch.zeros(1, 1, 3, SIZE, SIZE)
    export(Tower(model), (pixels,), vision, input_names=["pixel_values"], output_names=["image_features"])
    axes = {0: "batch_size", 1: "sequence_length"}
    export(
        Embedding(model), (torch.zeros(1, 3, dtype=torch.long),), files / "embed_tokens.onnx",
        input_names=["input_ids"], output_names=["inputs_embeds"],
        dynamic_axes={"input_ids": axes, "inputs_embeds": axes},
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as temporary:
        text = LlamaForCausalLM(config.text_config)
        text.load_state_dict(text_state)
        checkpoint = f"{temporary}/checkpoint"
        text.save_pretrained(checkpoint)
        tiny_tokenizer.write_json(Path(checkpoint), "\\w+", SPECIALS, None, "</s>")
        create_model(
            None, checkpoint, f"{temporary}/out", "int4", "cpu", temporary,
            exclude_embeds="true", prune_lm_head="true",
        )  # fmt: skip
        decoder = onnx.load(f"{temporary}/out/model.onnx")
    for value in [*decoder.graph.input, *decoder.graph.output]:
        # transformers.js reads the head size from the graph.
        if value.name.startswith(("past_key_values", "present")):
            dim = value.type.tensor_type.shape.dim[3]
            dim.ClearField("dim_param")
            dim.dim_value = config.text_config.head_dim
    for node in decoder.graph.node:
        for attribute in node.attribute if node.op_type == "MatMulNBits" else ():
            if attribute.name == "accuracy_level":
                # f32 activations.
                attribute.i = 1
    onnx.save(decoder, files / "decoder_model_merged_q4.onnx")

    preprocessor = {
        "image_processor_type": "SmolVLMImageProcessor", "do_convert_rgb": True, "do_resize": True,
        "do_rescale": True, "do_normalize": True, "do_pad": False, "do_image_splitting": False,
        "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "resample": 1, "rescale_factor": 1 / 255,
        "size": {"longest_edge": SIZE}, "max_image_size": {"longest_edge": SIZE},
    }  # fmt: skip
    documents = {
        "config.json": json.loads(config.to_json_string(use_diff=False)),
        "preprocessor_config.json": preprocessor,
        "generation_config.json": {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0},
    }
    for file, document in documents.items():
        (folder / name / file).write_text(json.dumps(document, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tower-layers", type=int, default=12)
    parser.add_argument("--text-layers", type=int, default=30)
    parser.add_argument("--vocab", type=int, default=49280)
    parser.add_argument("--tower-type", default="F16")
    args = parser.parse_args()
    name = f"smolvlm-{args.tower_layers}-{args.text_layers}"
    args.folder.mkdir(parents=True, exist_ok=True)
    tiny_tokenizer.VOCAB_SIZE = args.vocab
    strings, _ = tiny_tokenizer.byte_level(SPECIALS)
    config = config_of(args, strings.index("<image>"))
    torch.manual_seed(1)
    model = SmolVLMForConditionalGeneration(config).eval()
    state = model.state_dict()
    of_text = "model.text_model."
    is_text = lambda key: of_text in key or key == "lm_head.weight"  # noqa: E731
    text_state = {key.replace(of_text, "model."): value for key, value in state.items() if is_text(key)}
    write_text_gguf(args.folder, name, config.text_config, text_state)
    tower_state = {key: value for key, value in state.items() if not is_text(key)}
    write_tower_gguf(args.folder, name, args.tower_type, config, tower_state)
    write_onnx(args.folder, name, model, config, text_state)


main()
