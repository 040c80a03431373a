"""Makes tests/parity/adapters: random low-rank adapters of the tiny models, in the formats of PEFT and of
llama.cpp's converter, and the logits that transformers and peft compute with them in float32.

    VENV/bin/python scripts/references/adapters.py

Each adapter gets a NAME.json like those of the models. Its `model` names the base model. `llama-two.json` has the
logits with `llama` and `llama-patterns` at once, scaled by 0.75 and -0.5. The same names give the same bytes.
"""

import json
import shutil
import sys
import zlib
from dataclasses import dataclass, field

sys.dont_write_bytecode = True

import gguf  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from peft import LoraConfig, get_peft_model  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

import make  # noqa: E402
import names  # noqa: E402
from architectures import FOLDERS, MODELS  # noqa: E402

FOLDER = make.FOLDER.parent / "adapters"
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
GATED = ["gate_proj", "up_proj", "down_proj"]


@dataclass
class Adapter:
    """An adapter and the form of its files."""

    name: str
    # The name of its base model.
    model: str
    rank: int
    alpha: float
    modules: list
    dtype: str = "float32"
    # The type of A in the GGUF file; B is F32.
    gguf_type: str = "F16"
    # Further members of PEFT's config.
    more: dict = field(default_factory=dict)


ADAPTERS = [
    Adapter("llama", "llama", 4, 6.0, ATTENTION + GATED, dtype="float16"),
    # Only some modules, with several ranks and alphas, and the output matrix.
    Adapter("llama-patterns", "llama", 12, 5.0, ["q_proj", "v_proj", "up_proj", "lm_head"],
            gguf_type="F32",
            more={"use_rslora": True, "rank_pattern": {"v_proj": 1},
                  "alpha_pattern": {"v_proj": 2.0}}),
    # Queries, keys and values in one tensor, gate and up in another.
    Adapter("phi3", "phi3", 8, 8.0, ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"],
            gguf_type="Q8_0"),
    # Norms after the products.
    Adapter("gemma2", "gemma2", 5, 10.0, ATTENTION + GATED, dtype="bfloat16", gguf_type="BF16"),
    # Norms of all heads together, after the products.
    Adapter("olmo2", "olmo2", 3, 6.0, ATTENTION + GATED),
    # Layer norms, biases, no gate.
    Adapter("gpt2", "gpt2", 4, 4.0, ["c_attn", "c_proj", "c_fc"],
            more={"fan_in_fan_out": True}),
    # Attention beside experts.
    Adapter("olmoe", "olmoe-Q8_0", 4, 4.0, ATTENTION),
    # Rows of Q and K in the checkpoint's order.
    Adapter("mistral-hf", "mistral-hf", 4, 4.0, ATTENTION, dtype="float16"),
]  # fmt: skip


def base(name):
    """The architecture's name, the row of the table, and the model with the weights of its file."""
    for tiny in FOLDERS:
        if tiny.name == name:
            model = make.random_model(tiny)
            make.round_parameters(model, tiny.dtype)
            return "llama", tiny, model.float()
    tiny = next(tiny for tiny in MODELS if tiny.name == name)
    model = make.random_model(tiny)
    make.load(model, tiny.architecture, make.read(make.FOLDER / f"{name}.gguf"))
    return tiny.architecture, tiny, model


def config(adapter):
    return LoraConfig(
        r=adapter.rank,
        lora_alpha=adapter.alpha,
        target_modules=sorted(adapter.modules),
        task_type="CAUSAL_LM",
        **adapter.more,
    )


def fill(model, adapter, key):
    """Sets random values that the files represent exactly. They are large enough to change the logits."""
    generator = torch.Generator().manual_seed(zlib.crc32(adapter.name.encode()))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" not in name or f".{key}." not in name:
                continue
            values = torch.randn(parameter.shape, generator=generator)
            values *= 1.4 * parameter.shape[1] ** -0.5 if "lora_A" in name else 0.4
            values = values.to(getattr(torch, adapter.dtype)).float()
            if "lora_A" in name:
                values = stored(values, adapter)
            parameter.copy_(values.to(getattr(torch, adapter.dtype)).float())


def stored(values, adapter):
    """A as stored in the GGUF file."""
    kind = gguf.GGMLQuantizationType[adapter.gguf_type]
    array = gguf.quants.dequantize(gguf.quants.quantize(values.numpy(), kind), kind)
    return torch.from_numpy(np.array(array, np.float32))


def write_folder(model, adapter):
    folder = FOLDER / adapter.name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder, save_embedding_layers=False)
    (folder / "README.md").unlink(missing_ok=True)
    path = folder / "adapter_config.json"
    members = json.loads(path.read_text())
    members["base_model_name_or_path"] = adapter.model
    members["target_modules"] = sorted(members["target_modules"])
    path.write_text(json.dumps(members, indent=2, sort_keys=True) + "\n")
    path = folder / "adapter_model.safetensors"
    dtype = getattr(torch, adapter.dtype)
    tensors = {name: tensor.to(dtype) for name, tensor in load_file(path).items()}
    save_file(tensors, path, metadata={"format": "pt"})
    return tensors


def write_gguf(adapter, architecture, config, layers):
    """Writes a file with all modules. A file has a single alpha: the largest one of its modules."""
    path = FOLDER / f"{adapter.name}.gguf"
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string("adapter.type", "lora")
    scales = {layer.scaling["default"] * layer.r["default"] for _, layer in layers}
    alpha = max(scales)
    writer.add_float32("adapter.lora.alpha", alpha)
    for module, layer in layers:
        where = names.place(architecture, config, f"{module}.weight")
        a = layer.lora_A["default"].weight.detach().numpy()
        b = layer.lora_B["default"].weight.detach().numpy()
        # Differing scales are multiplied into B.
        b = b * np.float32(layer.scaling["default"] * layer.r["default"] / alpha)
        if where.form == "interleaved":
            b = where.to_gguf(b)
        kind = gguf.GGMLQuantizationType[adapter.gguf_type]
        writer.add_tensor(f"{where.name}.lora_a", gguf.quants.quantize(a, kind), raw_dtype=kind)
        writer.add_tensor(f"{where.name}.lora_b", np.ascontiguousarray(b))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def lora_layers(model):
    """The adapted modules, by their names in the checkpoint."""
    prefix = "base_model.model."
    modules = model.named_modules()
    return [(name.removeprefix(prefix), it) for name, it in modules if hasattr(it, "lora_A")]


def assert_sensitive(adapter, model, layers, ids, rows):
    """Checks that each kind of module changes the logits by far more than the tests' bounds."""
    for kind in adapter.modules:
        of_kind = [layer for name, layer in layers if name.endswith(f".{kind}") or name == kind]
        scales = [layer.scaling["default"] for layer in of_kind]
        for layer in of_kind:
            layer.scaling["default"] = 0.0
        moved = np.abs(make.logits(model, ids)[-1] - rows[-1]).max()
        for layer, scale in zip(of_kind, scales, strict=True):
            layer.scaling["default"] = scale
        assert moved > 0.2, f"{adapter.name} without {kind}: {moved}"


def refer(name, model, rows, ids):
    reference = {"model": model, **make.reference(rows, ids)}
    text = json.dumps(reference, separators=(",", ":"))
    (FOLDER / f"{name}.json").write_text(text + "\n")


def adapt(adapter):
    architecture, tiny, model = base(adapter.model)
    ids = make.prompt(tiny)
    before = make.logits(model, ids)
    model = get_peft_model(model, config(adapter)).eval()
    fill(model, adapter, "default")
    layers = lora_layers(model)
    rows = make.logits(model, ids)
    assert_sensitive(adapter, model, layers, ids, rows)
    moved = np.abs(rows[-1] - before[-1]).max()
    print(f"{adapter.name}: {len(layers)} modules move logits by {moved:.2f}")
    write_folder(model, adapter)
    write_gguf(adapter, architecture, tiny.config, layers)
    refer(adapter.name, adapter.model, rows, ids)


def adapt_twice():
    """Two adapters of the same model at once."""
    both, scales = ADAPTERS[:2], [0.75, -0.5]
    _, tiny, model = base(both[0].model)
    model = get_peft_model(model, config(both[0]), adapter_name="a")
    model.add_adapter("b", config(both[1]))
    for adapter, key in zip(both, "ab", strict=True):
        fill(model, adapter, key)
    model.base_model.set_adapter(["a", "b"])
    for _, layer in lora_layers(model.eval()):
        for scale, key in zip(scales, "ab", strict=True):
            if key in layer.scaling:
                layer.scaling[key] *= scale
    ids = make.prompt(tiny)
    rows = make.logits(model, ids)
    refer("llama-two", both[0].model, rows, ids)


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for adapter in ADAPTERS:
        adapt(adapter)
    adapt_twice()


if __name__ == "__main__":
    main()
