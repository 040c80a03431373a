"""Makes tests/parity/models: tiny random models of each architecture as GGUF files, as llama.cpp's
converter would write them, and the logits that transformers computes in float32 from the quantized
weights of the files.

    VENV/bin/python scripts/references/make.py [NAME ...]

A NAME that ends in -hf is a Hugging Face folder. Each model has a reference as JSON: `ids` (the prompt),
`last_logits` (after its last token) and `greedy_next` (the argmax after each token). A GGUF file has it
in its metadata, as `inpage.reference`; that of a folder is NAME.json. That of a GGUF file also has
`folder`, which describes the same model as a folder: its `config`, and for each of its `tensors` the
GGUF tensor, how the converter changes it, and the number of heads and the expert that this needs. The
same names give the same bytes.
"""

import json
import shutil
import sys
from pathlib import Path

sys.dont_write_bytecode = True

import gguf  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402

import metadata  # noqa: E402
import names  # noqa: E402
import packed  # noqa: E402
import random_weights  # noqa: E402
import tiny_tokenizer  # noqa: E402
from architectures import FOLDERS, MODELS, PACKED  # noqa: E402

FOLDER = Path(__file__).parents[2] / "tests/parity/models"


def random_model(tiny):
    """The model with random weights."""
    model = build(tiny.config)
    random_weights.fill(model, tiny.name)
    return model


def build(config):
    config._attn_implementation = "eager"
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


def weights(model):
    """The checkpoint's arrays by name."""
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}


def write(path, tiny, tensors, reference=None):
    """Writes the GGUF file, with its reference."""
    writer = gguf.GGUFWriter(path, tiny.architecture)
    writer.add_type(gguf.GGUFType.MODEL)
    writer.add_name(tiny.name)
    writer.add_file_type(gguf.LlamaFileType[f"MOSTLY_{tiny.file_type}"])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    metadata.add_to_gguf(writer, tiny.architecture, tiny.config)
    tiny_tokenizer.add_to_gguf(writer, tiny.tokenizer)
    if reference:
        writer.add_string("inpage.reference", reference)
    for name, array in tensors.items():
        array = array.astype(np.float32)
        kind = names.stored_type(name, array, tiny.file_type)
        writer.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def read(path):
    """The file's tensors as float32."""
    tensors = {}
    for tensor in gguf.GGUFReader(path).tensors:
        array = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        tensors[tensor.name] = np.asarray(array, np.float32)
    return tensors


def load(model, architecture, tensors):
    """Loads the weights of a file into `model`. All but the tied output must be present."""
    config = model.config
    wanted = [name for name in model.state_dict() if names.place(architecture, config, name)]
    state = names.from_gguf(architecture, config, tensors, wanted)
    state = {name: torch.from_numpy(np.array(array)) for name, array in state.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    tied = {"lm_head.weight"} if config.tie_word_embeddings else set()
    assert set(missing) <= tied and not unexpected, (missing, unexpected)
    model.tie_weights()


def logits(model, ids):
    """Logits after each of `ids`: `[tokens, vocabulary]`."""
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0].numpy()


def prompt(tiny):
    """Random ids, the same for every model of that length."""
    generator = np.random.default_rng(tiny.prompt_tokens)
    return generator.integers(0, tiny_tokenizer.VOCAB_SIZE, tiny.prompt_tokens).tolist()


def reference(rows, ids):
    return {
        "ids": ids,
        "last_logits": [float(f"{value:.6g}") for value in rows[-1]],
        "greedy_next": rows.argmax(axis=1).tolist(),
    }


def assert_sensitive(tiny, state, ids, rows):
    """Checks that each change of `without` moves the logits by far more than the tests'
    tolerance."""
    for change in tiny.without:
        config = type(tiny.config)(**{**tiny.config.to_dict(), **change})
        model = build(config)
        model.load_state_dict(state)
        moved = np.abs(logits(model, ids)[-1] - rows[-1]).max()
        assert moved > 0.3, f"{tiny.name} without {change}: {moved}"


def make(tiny):
    path = FOLDER / f"{tiny.name}.gguf"
    model = random_model(tiny)
    tensors = names.to_gguf(tiny.architecture, tiny.config, weights(model))
    tensors |= metadata.rope_tensors(tiny.config)
    write(path, tiny, tensors)
    load(model, tiny.architecture, read(path))
    write(path, tiny, tensors, referred(tiny, model, {"folder": folder(tiny, model)}))


def folder(tiny, model):
    """The description of the model's folder."""
    places = {name: names.place(tiny.architecture, tiny.config, name) for name in model.state_dict()}
    return {
        "config": json.loads(model.config.to_json_string()),
        "tensors": {
            name: [where.name, where.form, where.heads, where.expert]
            for name, where in places.items()
            if where is not None
        },
    }


def round_parameters(model, dtype):
    """Rounds the parameters to a 16-bit type. Rotary frequencies stay float32, as in transformers."""
    for parameter in model.parameters():
        parameter.data = parameter.data.to(getattr(torch, dtype))


def make_folder(tiny):
    folder = FOLDER / tiny.name
    shutil.rmtree(folder, ignore_errors=True)
    model = random_model(tiny)
    round_parameters(model, tiny.dtype)
    shards = {"max_shard_size": tiny.shard_bytes} if tiny.shard_bytes else {}
    model.save_pretrained(folder, **shards)
    (folder / "generation_config.json").unlink()
    tiny_tokenizer.write_json(folder, *tiny.tokenizer)
    write_reference(tiny, model.float())


def make_packed(tiny):
    """Writes a folder with packed matrices in layers, except routers. All else is float16."""
    folder = FOLDER / tiny.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    model = random_model(tiny)
    generator = np.random.default_rng(0)
    tensors = {}
    for name, module in model.named_modules():
        is_matrix = isinstance(module, torch.nn.Linear) and ".layers." in name
        if not is_matrix or name.endswith("mlp.gate"):
            continue
        weight = module.weight.data.numpy()
        groups = tiny.packing.groups(weight.shape[1], generator)
        parts = tiny.packing.quantize(weight, groups)
        for part, array in tiny.packing.pack(*parts, groups).items():
            tensors[f"{name}.{part}"] = array
        if tiny.packing.idle_biases:
            tensors[f"{name}.bias"] = np.zeros(weight.shape[0], np.float16)
        module.weight.data = torch.from_numpy(packed.dequantize(*parts, groups))
    for name, parameter in model.named_parameters():
        if name.removesuffix("weight") + "qweight" not in tensors:
            half = parameter.data.half()
            tensors[name] = half.numpy()
            parameter.data = half.float()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads(model.config.to_json_string())
    config["quantization_config"] = tiny.packing.config()
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    write_reference(tiny, model)


def referred(tiny, model, further={}):
    """The reference of `model`, which has the weights of the file, with further members, as JSON."""
    ids = prompt(tiny)
    rows = logits(model, ids)
    assert_sensitive(tiny, model.state_dict(), ids, rows)
    print(f"{tiny.name}: logits spread by {rows.std():.2f}")
    return json.dumps(reference(rows, ids) | further, separators=(",", ":"))


def write_reference(tiny, model):
    """Writes the reference of a folder."""
    (FOLDER / f"{tiny.name}.json").write_text(referred(tiny, model) + "\n")


def main(wanted):
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for tiny in MODELS:
        if not wanted or tiny.name in wanted:
            make(tiny)
    for tiny in FOLDERS:
        if not wanted or tiny.name in wanted:
            make_folder(tiny)
    for tiny in PACKED:
        if not wanted or tiny.name in wanted:
            make_packed(tiny)


if __name__ == "__main__":
    main(sys.argv[1:])
