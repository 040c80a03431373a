"""Validates the generation of references: loads files written by llama.cpp's converter through the same
mapping of tensors, and compares the logits with stored ones.

    VENV/bin/python scripts/references/check_shared.py ../shared/models/tiny
"""

import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True

import gguf  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from transformers import (  # noqa: E402
    Gemma3TextConfig,
    LlamaConfig,
    Phi3Config,
    Qwen2Config,
    Qwen3Config,
)

import make  # noqa: E402
from architectures import MODELS  # noqa: E402

CONFIGS = {
    "llama": LlamaConfig,
    "qwen2": Qwen2Config,
    "qwen3": Qwen3Config,
    "gemma3": Gemma3TextConfig,
    "phi3": Phi3Config,
}
KEYS = {
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.sliding_window": "sliding_window",
    "rope.freq_base": "rope_theta",
    "rope.freq_base_swa": "rope_local_base_freq",
    "rope.scaling.original_context_length": "original_max_position_embeddings",
}


def config_of(fields, architecture, tensors):
    values = {"pad_token_id": None, "vocab_size": tensors["token_embd.weight"].shape[0]}
    for key, name in KEYS.items():
        if field := fields.get(f"{architecture}.{key}"):
            values[name] = field.contents()
    values["tie_word_embeddings"] = "output.weight" not in tensors
    if architecture == "gemma3":
        values["query_pre_attn_scalar"] = values["head_dim"]
    return CONFIGS[architecture](**values)


def model_of(path):
    reader = gguf.GGUFReader(path)
    tensors = make.read(path)
    architecture = reader.fields["general.architecture"].contents()
    config = config_of(reader.fields, architecture, tensors)
    model = make.build(config)
    make.load(model, architecture, tensors)
    if "rope_freqs.weight" in tensors:
        model.model.rotary_emb.inv_freq /= torch.from_numpy(tensors["rope_freqs.weight"])
    return model


def check_logits(folder):
    for reference in sorted((folder / "refs").glob("*.json")):
        name = reference.stem
        document = json.loads(reference.read_text())
        for kind in document.get("quants", {}):
            path = folder / f"{name}-{kind}.gguf"
            logits_path = folder / f"refs/{name}-{kind}.last_logits.npy"
            if not path.exists() or not logits_path.exists():
                continue
            rows = make.logits(model_of(path), document["ids"])
            wanted = np.load(logits_path).ravel()
            worst = np.abs(rows[-1] - wanted).max()
            same = (rows.argmax(axis=1) == document["quants"][kind]["greedy_next"]).mean()
            print(f"{path.name}: off by {worst:.1e}, {same:.0%} of greedy choices")
            assert worst < 5e-3 and same > 0.95, path


def described(path):
    """Keys with their types. Tensors of layer 0 and outside of layers with their numbers of dimensions."""
    reader = gguf.GGUFReader(path)
    keys = {name: field.types for name, field in reader.fields.items()}
    tensors = {tensor.name: len(tensor.shape) for tensor in reader.tensors}
    return keys, {name: ndim for name, ndim in tensors.items() if "blk." not in name or ".0." in name}


def check_forms(folder):
    """Prints the keys and tensors that only our file or only the converter's file of an architecture has."""
    for name, shared in [("llama", "llama3-F16"), ("qwen2", "qwen2-Q8_0"), ("qwen3", "qwen3-F16"),
                         ("gemma3", "gemma3-F16"), ("phi3", "phi3-Q8_0")]:  # fmt: skip
        assert any(tiny.name == name for tiny in MODELS)
        ours = described(make.FOLDER / f"{name}.gguf")
        theirs = described(folder / f"{shared}.gguf")
        for part, mine, other in zip(("keys", "tensors"), ours, theirs):
            differing = {key for key in mine.keys() & other.keys() if mine[key] != other[key]}
            print(f"{name} {part}: only ours {sorted(mine.keys() - other.keys())}, only the "
                  f"converter's {sorted(other.keys() - mine.keys())}")  # fmt: skip
            assert not differing, differing


if __name__ == "__main__":
    torch.set_num_threads(1)
    check_forms(Path(sys.argv[1]))
    check_logits(Path(sys.argv[1]))
