"""The GGUF tensor of each tensor of a Hugging Face checkpoint, and how converters change its elements.

The names come from the gguf package, the changes are those of llama.cpp's converter: rows of q and k of
architectures that rotate adjacent pairs are interleaved, Gemma's norms are stored plus one, GPT-2's
matrices are transposed, experts are stacked.
"""

import re
from dataclasses import dataclass

import gguf
import numpy as np

# Architectures whose files hold rotated pairs of q and k in adjacent rows.
INTERLEAVED = {"llama", "granite", "smollm3"}


@dataclass
class Place:
    """A checkpoint tensor's place in a GGUF file."""

    name: str
    # Index in a stack of experts.
    expert: int | None
    form: str
    # Heads of an interleaved q or k.
    heads: int = 0

    def to_gguf(self, array):
        if self.form == "plus one":
            return array + np.float32(1)
        if self.form == "transposed":
            return np.ascontiguousarray(array.T)
        if self.form == "interleaved":
            split = array.reshape(self.heads, 2, -1, *array.shape[1:])
            return np.ascontiguousarray(split.swapaxes(1, 2)).reshape(array.shape)
        return array

    def from_gguf(self, array):
        if self.expert is not None:
            array = array[self.expert]
        if self.form == "plus one":
            return array - np.float32(1)
        if self.form == "transposed":
            return np.ascontiguousarray(array.T)
        if self.form == "interleaved":
            split = array.reshape(self.heads, -1, 2, *array.shape[1:])
            return np.ascontiguousarray(split.swapaxes(1, 2)).reshape(array.shape)
        return array


def place(architecture, config, name):
    """The place of the checkpoint tensor `name`; `None` if files omit it."""
    if name == "lm_head.weight" and config.tie_word_embeddings:
        return None
    expert = None
    if found := re.search(r"\.experts\.(\d+)\.", name):
        expert = int(found[1])
        name = name.replace(found[0], ".experts.")
    arch = next(key for key, value in gguf.MODEL_ARCH_NAMES.items() if value == architecture)
    names = gguf.get_tensor_name_map(arch, config.num_hidden_layers)
    mapped = names.get_name(name, try_suffixes=(".weight", ".bias"))
    if mapped is None:
        raise ValueError(f"{architecture} files have no place for {name}")
    if architecture.startswith("gemma") and name.endswith("norm.weight"):
        return Place(mapped, expert, "plus one")
    if architecture == "gpt2" and re.search(r"\.(c_attn|c_proj|c_fc)\.weight$", name):
        return Place(mapped, expert, "transposed")
    if architecture in INTERLEAVED:
        if re.search(r"q_proj\.(weight|bias)$", name):
            return Place(mapped, expert, "interleaved", config.num_attention_heads)
        if re.search(r"k_proj\.(weight|bias)$", name):
            return Place(mapped, expert, "interleaved", config.num_key_value_heads)
    return Place(mapped, expert, "as it is")


def to_gguf(architecture, config, state):
    """The tensors of a file, from the arrays of a checkpoint."""
    tensors, stacks = {}, {}
    for name, array in state.items():
        where = place(architecture, config, name)
        if where is None:
            continue
        array = where.to_gguf(array)
        if where.expert is None:
            tensors[where.name] = array
        else:
            stacks.setdefault(where.name, {})[where.expert] = array
    for name, experts in stacks.items():
        tensors[name] = np.stack([experts[i] for i in range(len(experts))])
    return tensors


def from_gguf(architecture, config, tensors, names):
    """The arrays of the checkpoint tensors `names`, from the tensors of a file."""
    state = {}
    for name in names:
        where = place(architecture, config, name)
        if where is not None:
            state[name] = where.from_gguf(tensors[where.name])
    return state


def stored_type(name, array, file_type):
    """The type that llama.cpp's converter gives the tensor: vectors, norms, routers and learned
    positions stay F32."""
    if array.ndim == 1 or name.endswith(("_norm.weight", "ffn_gate_inp.weight", ".bias")):
        return gguf.GGMLQuantizationType.F32
    if name in ("position_embd.weight", "rope_freqs.weight"):
        return gguf.GGMLQuantizationType.F32
    return gguf.GGMLQuantizationType[file_type]
