"""Makes tests/parity/embeddings: tiny random models that make embeddings, as GGUF files as llama.cpp's
converter would write them or as folders of sentence-transformers, and the vectors that transformers computes in
float32 from the weights of the files.

    VENV/bin/python scripts/references/embeddings.py [NAME ...]

Each model gets a NAME.json: `inputs`, each with its `ids`, its `vector` and, where the tokenizer is compared
as well, its `text`. transformers has no code of nomic-bert without downloading it, so its reference is
`nomic_states` below, written from the model's description.
"""

import json
import shutil
import sys
from pathlib import Path

sys.dont_write_bytecode = True

import gguf  # noqa: E402
import numpy as np  # noqa: E402
import tokenizers  # noqa: E402
import torch  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402
from tokenizers import (  # noqa: E402
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)
from tokenizers.implementations import BertWordPieceTokenizer  # noqa: E402
from transformers import (  # noqa: E402
    BertConfig,
    BertModel,
    Gemma3TextConfig,
    Gemma3TextModel,
    Qwen3Config,
    Qwen3Model,
)

import metadata  # noqa: E402
import tiny_tokenizer  # noqa: E402
from architectures import GEMMA, LLAMA3, QWEN2, SIZES  # noqa: E402

FOLDER = Path(__file__).parents[2] / "tests/parity/embeddings"
POOLING = {"mean": 1, "cls": 2, "last": 3}
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXTS = [
    "The cat sat.",
    "A",
    "Déjà vu: naïve ÀÉÎ!",
    "cats, dogs & unknowable things... 東京 is far",
    "  white \t space\nand \u00a0 more\u200d ",
    "x" * 120 + " the end",
    "the quick brown fox is at the café on the hill " * 5,
    "€ 😀 don't [MASK] [SEP]x",
]


def vocabulary():
    """A vocabulary of WordPiece: specials, letters at the start and inside of words, words and endings."""
    letters = [*"abcdefghijklmnopqrstuvwxyz0123456789.,!?:;&'()-$"]
    words = ["the", "cat", "dog", "is", "at", "on", "and", "end", "deja", "vu", "fox", "hill", "東"]
    endings = ["##" + ending for ending in ["s", "at", "ing", "ow", "ck", "ive", "able", "ll"]]
    inside = ["##" + letter for letter in letters[:26]]
    return SPECIALS + letters + words + sorted(set(endings + inside))


def bert_tokenizer():
    vocab = {text: i for i, text in enumerate(vocabulary())}
    return BertWordPieceTokenizer(vocab=vocab, lowercase=True)


def add_bert_tokenizer(writer):
    """Writes the keys as the converter does: `▁` begins words, and pieces inside of words lose their signs."""

    def phantom(text):
        if text.startswith("[") and text.endswith("]"):
            return text
        return text[2:] if text.startswith("##") else "▁" + text

    strings = vocabulary()
    control = gguf.TokenType.CONTROL
    types = [control if text in SPECIALS else gguf.TokenType.NORMAL for text in strings]
    writer.add_token_type_count(2)
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([phantom(text) for text in strings])
    writer.add_token_types(types)
    writer.add_unk_token_id(1)
    writer.add_sep_token_id(3)
    writer.add_pad_token_id(0)
    writer.add_bos_token_id(2)
    writer.add_mask_token_id(4)


def fill(model, name):
    """Random weights; `name` decides which."""
    generator = torch.Generator().manual_seed(sum(name.encode()) * 7919)
    for key, parameter in model.named_parameters():
        normal = torch.randn(parameter.shape, generator=generator)
        is_norm = "norm" in key.lower() and key.endswith("weight")
        adds_one = model.config.model_type.startswith("gemma")
        centre = 1.0 if is_norm and not adds_one else 0.0
        if parameter.ndim == 1:
            deviation = 0.2
        elif "embed" in key:
            deviation = 0.3
        else:
            sharp = any(part in key for part in ["query", "key", "q_proj", "k_proj"])
            deviation = (1.6 if sharp else 1.2) * parameter.shape[-1] ** -0.5
        parameter.data = centre + deviation * normal


def stored(name, array, file_type):
    """The type of a tensor in a file of this type."""
    is_matrix = array.ndim == 2 and not name.startswith(("position_embd", "token_types"))
    return gguf.GGMLQuantizationType[file_type] if is_matrix else gguf.GGMLQuantizationType.F32


def round_trip(array, kind):
    return np.asarray(gguf.quants.dequantize(gguf.quants.quantize(array, kind), kind), np.float32)


def write_gguf(name, architecture, tensors, file_type, add_keys):
    """Writes the file. Returns its tensors as float32."""
    writer = gguf.GGUFWriter(FOLDER / f"{name}.gguf", architecture)
    writer.add_type(gguf.GGUFType.MODEL)
    writer.add_name(name)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    add_keys(writer)
    rounded = {}
    for key, array in tensors.items():
        array = array.astype(np.float32)
        kind = stored(key, array, file_type)
        writer.add_tensor(key, gguf.quants.quantize(array, kind), raw_dtype=kind)
        rounded[key] = round_trip(array, kind).reshape(array.shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return rounded


def gguf_names(architecture, layers, state, skip=()):
    """Pairs of a checkpoint's name and the file's."""
    arch = next(key for key, value in gguf.MODEL_ARCH_NAMES.items() if value == architecture)
    table = gguf.get_tensor_name_map(arch, layers)
    found = {}
    for key in state:
        if any(part in key for part in skip):
            continue
        mapped = table.get_name(key, try_suffixes=(".weight", ".bias"))
        if mapped is None:
            mapped = table.get_name("model." + key, try_suffixes=(".weight", ".bias"))
        assert mapped, key
        found[key] = mapped
    return found


def pooled(rows, pooling, normalizes=True):
    vector = {"mean": rows.mean(0), "cls": rows[0], "last": rows[-1]}[pooling]
    return vector / np.linalg.norm(vector) if normalizes else vector


def write_references(name, inputs):
    for item in inputs:
        item["vector"] = [float(f"{value:.6g}") for value in item["vector"]]
    vectors = np.array([item["vector"] for item in inputs])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    likeness = unit @ unit.T - 2 * np.eye(len(inputs))
    text = json.dumps({"inputs": inputs}, separators=(",", ":"), ensure_ascii=False)
    (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    print(f"{name}: the most similar of different inputs: {likeness.max():.3f}")


def states(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).last_hidden_state[0].numpy()


def random_inputs(vocab, lengths, last):
    generator = np.random.default_rng(len(lengths))
    return [[*map(int, generator.integers(0, vocab - 70, length)), *last] for length in lengths]


def qwen3(name, file_type):
    """Like Qwen3-Embedding: the vector of the end-of-text token, which the tokenizer appends."""
    config = Qwen3Config(**SIZES, head_dim=32, rope_theta=1e6, attn_implementation="eager")
    model = Qwen3Model(config).eval()
    fill(model, name)
    names = gguf_names("qwen3", config.num_hidden_layers, model.state_dict())
    tensors = {names[key]: value.numpy() for key, value in model.state_dict().items()}
    eos = "<|endoftext|>"

    def add_keys(writer):
        writer.add_pooling_type(gguf.PoolingType.LAST)
        metadata.add_to_gguf(writer, "qwen3", config)
        pre, specials, _, _, _ = QWEN2
        tiny_tokenizer.add_to_gguf(writer, (pre, specials, None, eos, False))
        writer.kv_data[0].pop("tokenizer.ggml.add_eos_token")
        writer.add_add_eos_token(True)

    rounded = write_gguf(name, "qwen3", tensors, file_type, add_keys)
    model.load_state_dict({key: torch.from_numpy(rounded[names[key]]) for key in names})
    strings, _ = tiny_tokenizer.byte_level(QWEN2[1])
    inputs = random_inputs(320, [3, 12, 77, 1, 30], [strings.index(eos)])
    inputs = [{"ids": ids, "vector": pooled(states(model, ids), "last")} for ids in inputs]
    write_references(name, inputs)


def eurobert(name, file_type):
    """Like EuroBERT. Only the transformers of requirements-folders.txt has it."""
    from transformers import EuroBertConfig, EuroBertModel

    config = EuroBertConfig(
        **{**SIZES, "vocab_size": 320, "intermediate_size": 72, "hidden_size": 48, "num_attention_heads": 3,
           "num_key_value_heads": 1, "pad_token_id": 0}, rope_theta=250000.0, attn_implementation="eager",
    )  # fmt: skip
    config.rope_theta = 250000.0
    model = EuroBertModel(config).eval()
    fill(model, name)
    names = gguf_names("eurobert", config.num_hidden_layers, model.state_dict())
    tensors = {names[key]: value.numpy() for key, value in model.state_dict().items()}

    def add_keys(writer):
        writer.add_pooling_type(gguf.PoolingType.MEAN)
        writer.add_causal_attention(False)
        metadata.add_to_gguf(writer, "eurobert", config)
        pre, specials, bos, eos, _ = LLAMA3
        tiny_tokenizer.add_to_gguf(writer, (pre, specials, bos, eos, False))

    rounded = write_gguf(name, "eurobert", tensors, file_type, add_keys)
    model.load_state_dict({key: torch.from_numpy(rounded[names[key]]) for key in names})
    inputs = random_inputs(320, [3, 12, 77, 1, 30], [])
    inputs = [{"ids": ids, "vector": pooled(states(model, ids), "mean")} for ids in inputs]
    write_references(name, inputs)


def bert_config(width):
    return BertConfig(vocab_size=len(vocabulary()), hidden_size=width, intermediate_size=width * 2 + 32,
                      num_hidden_layers=2, num_attention_heads=width // 16, max_position_embeddings=130,
                      attn_implementation="eager")  # fmt: skip


BERT_SKIPPED = ("pooler", "position_ids")


def bert(name, width, pooling, file_type):
    config = bert_config(width)
    model = BertModel(config).eval()
    fill(model, name)
    names = gguf_names("bert", config.num_hidden_layers, model.state_dict(), BERT_SKIPPED)
    tensors = {names[key]: model.state_dict()[key].numpy() for key in names}

    def add_keys(writer):
        writer.add_block_count(config.num_hidden_layers)
        writer.add_context_length(config.max_position_embeddings)
        writer.add_embedding_length(config.hidden_size)
        writer.add_feed_forward_length(config.intermediate_size)
        writer.add_head_count(config.num_attention_heads)
        writer.add_layer_norm_eps(config.layer_norm_eps)
        writer.add_causal_attention(False)
        writer.add_pooling_type(gguf.PoolingType(POOLING[pooling]))
        add_bert_tokenizer(writer)

    rounded = write_gguf(name, "bert", tensors, file_type, add_keys)
    rounded = {key: torch.from_numpy(rounded[names[key]]) for key in names}
    model.load_state_dict(rounded, strict=False)
    refer_texts(name, lambda ids: pooled(states(model, ids), pooling))


def refer_texts(name, vector, tokenizer=None):
    tokenizer = tokenizer or bert_tokenizer()
    inputs = []
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        inputs.append({"text": text, "ids": ids, "vector": vector(ids)})
    write_references(name, inputs)


def new_folder(name):
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def bert_folder(name, width, pooling, normalizes):
    """A folder as sentence-transformers saves it, with float16 weights."""
    folder = new_folder(name)
    model = BertModel(bert_config(width)).eval()
    fill(model, name)
    for parameter in model.parameters():
        parameter.data = parameter.data.half().float()
    halves = {key: value.half().numpy() for key, value in model.state_dict().items()}
    save_file(halves, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads(model.config.to_json_string(use_diff=False))
    kept = ["architectures", "attention_probs_dropout_prob", "hidden_act", "hidden_size",
            "intermediate_size", "layer_norm_eps", "max_position_embeddings", "model_type",
            "num_attention_heads", "num_hidden_layers", "position_embedding_type",
            "type_vocab_size", "vocab_size"]  # fmt: skip
    write_json(folder / "config.json", {key: config[key] for key in kept if key in config})
    write_bert_tokenizer(folder)
    write_modules(folder, width, pooling, ["Normalize"] if normalizes else [])
    refer_texts(name, lambda ids: pooled(states(model, ids), pooling, normalizes))


def write_bert_tokenizer(folder):
    bert_tokenizer().save(str(folder / "tokenizer.json"), pretty=False)
    write_json(folder / "tokenizer_config.json",
               {"cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]",
                "tokenizer_class": "BertTokenizer", "do_lower_case": True})  # fmt: skip


def write_modules(folder, width, pooling, others):
    """`modules.json`, and the pooling's description."""
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    modules += [(f"{idx}_{kind}", kind) for idx, kind in enumerate(others, 2)]
    write_json(folder / "modules.json", [
        {"idx": idx, "name": str(idx), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for idx, (path, kind) in enumerate(modules)
    ])  # fmt: skip
    (folder / "1_Pooling").mkdir()
    write_json(folder / "1_Pooling/config.json", {
        "word_embedding_dimension": width,
        "pooling_mode_cls_token": pooling == "cls",
        "pooling_mode_mean_tokens": pooling == "mean",
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_sqrt_len_tokens": False,
    })  # fmt: skip


def write_json(path, value):
    path.write_text(json.dumps(value, separators=(",", ":")) + "\n")


NOMIC_HEADS, NOMIC_LAYERS, NOMIC_BASE = 4, 2, 1000.0


def nomic_tensors(width, ffn, vocab):
    """Tensors of a Nomic Embed 1.5 by the names of GGUF files: a BERT with rotary positions and SwiGLU, without biases
    of matrices."""
    generator = torch.Generator().manual_seed(11)

    def random(*shape, scale=1.2):
        return (torch.randn(shape, generator=generator) * scale * shape[-1] ** -0.5).numpy()

    def norm():
        weight = 1 + 0.2 * torch.randn(width, generator=generator)
        return weight.numpy(), 0.2 * torch.randn(width, generator=generator).numpy()

    tensors = {"token_embd.weight": 0.3 * width**0.5 * random(vocab, width, scale=1.0),
               "token_types.weight": 0.3 * width**0.5 * random(2, width, scale=1.0)}  # fmt: skip
    tensors["token_embd_norm.weight"], tensors["token_embd_norm.bias"] = norm()
    for i in range(NOMIC_LAYERS):
        tensors[f"blk.{i}.attn_qkv.weight"] = random(3 * width, width, scale=1.5)
        tensors[f"blk.{i}.attn_output.weight"] = random(width, width)
        for part in ["attn_output_norm", "layer_output_norm"]:
            tensors[f"blk.{i}.{part}.weight"], tensors[f"blk.{i}.{part}.bias"] = norm()
        tensors[f"blk.{i}.ffn_up.weight"] = random(ffn, width)
        tensors[f"blk.{i}.ffn_gate.weight"] = random(ffn, width)
        tensors[f"blk.{i}.ffn_down.weight"] = random(width, ffn)
    return tensors


def nomic(name, file_type):
    width, ffn = 64, 96
    tensors = nomic_tensors(width, ffn, len(vocabulary()))

    def add_keys(writer):
        writer.add_block_count(NOMIC_LAYERS)
        writer.add_context_length(256)
        writer.add_embedding_length(width)
        writer.add_feed_forward_length(ffn)
        writer.add_head_count(NOMIC_HEADS)
        writer.add_layer_norm_eps(1e-12)
        writer.add_causal_attention(False)
        writer.add_pooling_type(gguf.PoolingType.MEAN)
        writer.add_rope_freq_base(NOMIC_BASE)
        add_bert_tokenizer(writer)

    rounded = write_gguf(name, "nomic-bert", tensors, file_type, add_keys)
    rounded = {key: torch.from_numpy(array) for key, array in rounded.items()}
    refer_texts(name, lambda ids: pooled(nomic_states(rounded, ids), "mean"))


# Modules of the published checkpoints, which GGUF files name differently.
NOMIC_MODULES = {
    "token_embd": "embeddings.word_embeddings",
    "token_types": "embeddings.token_type_embeddings",
    "token_embd_norm": "emb_ln",
    "attn_qkv": "attn.Wqkv",
    "attn_output": "attn.out_proj",
    "attn_output_norm": "norm1",
    "ffn_up": "mlp.fc11",
    "ffn_gate": "mlp.fc12",
    "ffn_down": "mlp.fc2",
    "layer_output_norm": "norm2",
}


def nomic_folder(name):
    """A folder with the members and names of Nomic Embed 1.5, and float16 weights. As there, the table of embeddings
    has more rows than the tokenizer has tokens."""
    width, ffn = 64, 64
    vocab = -(-len(vocabulary()) // 64) * 64
    folder = new_folder(name)
    halves = {key: array.astype(np.float16) for key, array in nomic_tensors(width, ffn, vocab).items()}

    def checkpoint_name(key):
        module, suffix = key.rsplit(".", 1)
        if not module.startswith("blk."):
            return f"{NOMIC_MODULES[module]}.{suffix}"
        _, layer, part = module.split(".")
        return f"encoder.layers.{layer}.{NOMIC_MODULES[part]}.{suffix}"

    save_file({checkpoint_name(key): array for key, array in halves.items()},
              folder / "model.safetensors", metadata={"format": "pt"})  # fmt: skip
    write_json(folder / "config.json", {
        "activation_function": "swiglu", "architectures": ["NomicBertModel"], "causal": False,
        "layer_norm_epsilon": 1e-12, "max_trained_positions": 256, "mlp_fc1_bias": False,
        "mlp_fc2_bias": False, "model_type": "nomic_bert", "n_embd": width, "n_head": NOMIC_HEADS,
        "n_inner": ffn, "n_layer": NOMIC_LAYERS, "n_positions": 1024, "pad_vocab_size_multiple": 64,
        "parallel_block": False, "parallel_block_tied_norm": False, "prenorm": False,
        "qkv_proj_bias": False, "rotary_emb_base": int(NOMIC_BASE), "rotary_emb_fraction": 1.0,
        "rotary_emb_interleaved": False, "rotary_emb_scale_base": None,
        "rotary_scaling_factor": None, "scale_attn_by_inverse_layer_idx": False,
        "scale_attn_weights": True, "type_vocab_size": 2, "use_rms_norm": False,
        "vocab_size": vocab,
    })  # fmt: skip
    write_bert_tokenizer(folder)
    write_modules(folder, width, "mean", [])
    stored = {key: torch.from_numpy(array.astype(np.float32)) for key, array in halves.items()}
    refer_texts(name, lambda ids: pooled(nomic_states(stored, ids), "mean", False))


def nomic_states(tensors, ids):
    """Post-norm layers. Rotary embedding turns the halves of a head."""
    functional = torch.nn.functional
    heads, layers, base = NOMIC_HEADS, NOMIC_LAYERS, NOMIC_BASE
    width = tensors["token_embd.weight"].shape[1]
    head_dim = width // heads

    def norm(x, name):
        return functional.layer_norm(x, (width,), tensors[f"{name}.weight"], tensors[f"{name}.bias"], 1e-12)

    def rotate(x):
        positions = torch.arange(len(ids), dtype=torch.float64)
        frequencies = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
        angles = positions[:, None, None] * frequencies
        cos, sin = angles.cos().float(), angles.sin().float()
        a, b = x[..., : head_dim // 2], x[..., head_dim // 2 :]
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    x = tensors["token_embd.weight"][ids] + tensors["token_types.weight"][0]
    x = norm(x, "token_embd_norm")
    for i in range(layers):
        weight = {key: tensors[f"blk.{i}.{key}.weight"] for key in
                  ["attn_qkv", "attn_output", "ffn_up", "ffn_gate", "ffn_down"]}  # fmt: skip
        q, k, v = (x @ weight["attn_qkv"].T).reshape(len(ids), 3, heads, head_dim).unbind(1)
        scores = torch.einsum("ihd,jhd->hij", rotate(q), rotate(k)) * head_dim**-0.5
        attended = torch.einsum("hij,jhd->ihd", scores.softmax(-1), v).reshape(len(ids), width)
        x = norm(x + attended @ weight["attn_output"].T, f"blk.{i}.attn_output_norm")
        hidden = (x @ weight["ffn_up"].T) * functional.silu(x @ weight["ffn_gate"].T)
        x = norm(x + hidden @ weight["ffn_down"].T, f"blk.{i}.layer_output_norm")
    return x.numpy()


def gemma(name, file_type):
    """EmbeddingGemma: Gemma 3 without a causal mask, the mean of tokens, two dense layers."""
    sizes = {**SIZES, "num_hidden_layers": 6, "intermediate_size": 96}
    # The file's window is twice what a token sees on each side, as in the config.json of the model.
    window = 24
    config = Gemma3TextConfig(**sizes, head_dim=16, query_pre_attn_scalar=16, sliding_window=window,
                              use_bidirectional_attention=True, attn_implementation="eager")  # fmt: skip
    assert config.sliding_window == window // 2 + 1
    model = Gemma3TextModel(config).eval()
    fill(model, name)
    names = gguf_names("gemma-embedding", config.num_hidden_layers, model.state_dict())
    adds_one = {names[key] for key in names if key.endswith("norm.weight")}
    tensors = {names[key]: value.numpy() + float(names[key] in adds_one)
               for key, value in model.state_dict().items()}  # fmt: skip
    generator = torch.Generator().manual_seed(5)
    for dense, shape in [("dense_2", (160, 64)), ("dense_3", (64, 160))]:
        tensors[f"{dense}.weight"] = torch.randn(shape, generator=generator).numpy() * shape[1] ** -0.5

    def add_keys(writer):
        writer.add_context_length(config.max_position_embeddings)
        writer.add_embedding_length(config.hidden_size)
        writer.add_block_count(config.num_hidden_layers)
        writer.add_feed_forward_length(config.intermediate_size)
        writer.add_head_count(config.num_attention_heads)
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
        writer.add_rope_freq_base(config.rope_theta)
        writer.add_sliding_window(window)
        writer.add_head_count_kv(config.num_key_value_heads)
        writer.add_pooling_type(gguf.PoolingType.MEAN)
        writer.add_uint32("gemma-embedding.dense_2_feat_in", 64)
        writer.add_uint32("gemma-embedding.dense_2_feat_out", 160)
        writer.add_uint32("gemma-embedding.dense_3_feat_in", 160)
        writer.add_uint32("gemma-embedding.dense_3_feat_out", 64)
        tiny_tokenizer.add_to_gguf(writer, GEMMA)
        writer.kv_data[0].pop("tokenizer.ggml.add_eos_token")
        writer.add_add_eos_token(True)

    rounded = write_gguf(name, "gemma-embedding", tensors, file_type, add_keys)
    model.load_state_dict({key: torch.from_numpy(rounded[names[key]] - float(names[key] in adds_one))
                           for key in names})  # fmt: skip

    def vector(ids):
        mean = states(model, ids).mean(0)
        dense = rounded["dense_3.weight"] @ (rounded["dense_2.weight"] @ mean)
        return dense / np.linalg.norm(dense)

    inputs = [[2, *ids, 1] for ids in random_inputs(320, [3, 40, 100, 1], [])]
    write_references(name, [{"ids": ids, "vector": vector(ids)} for ids in inputs])


def gemma_folder(name):
    """A folder with the members of EmbeddingGemma's, and float16 weights."""
    window, width, inner = 24, 32, 96
    sizes = {**SIZES, "hidden_size": width, "num_hidden_layers": 6, "intermediate_size": 64,
             "max_position_embeddings": 512}  # fmt: skip
    config = Gemma3TextConfig(**sizes, head_dim=16, query_pre_attn_scalar=16, sliding_window=window,
                              use_bidirectional_attention=True, attn_implementation="eager")  # fmt: skip
    model = Gemma3TextModel(config).eval()
    fill(model, name)
    folder = new_folder(name)
    for parameter in model.parameters():
        parameter.data = parameter.data.half().float()
    halves = {key: value.half().numpy() for key, value in model.state_dict().items()}
    save_file(halves, folder / "model.safetensors", metadata={"format": "pt"})
    members = json.loads(config.to_json_string(use_diff=False))
    kept = ["attention_bias", "attn_logit_softcapping", "final_logit_softcapping", "head_dim",
            "hidden_activation", "hidden_size", "intermediate_size", "layer_types",
            "max_position_embeddings", "model_type", "num_attention_heads", "num_hidden_layers",
            "num_key_value_heads", "query_pre_attn_scalar", "rms_norm_eps", "rope_local_base_freq",
            "rope_scaling", "rope_theta", "use_bidirectional_attention", "vocab_size"]  # fmt: skip
    # transformers halves the window when it reads the file.
    write_json(folder / "config.json", {"architectures": ["Gemma3TextModel"], "_sliding_window_pattern": 6,
               "sliding_window": window, **{key: members[key] for key in kept}})  # fmt: skip
    tokenizer = gemma_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    write_json(folder / "tokenizer_config.json",
               {"add_bos_token": True, "add_eos_token": True, "bos_token": "<bos>", "eos_token": "<eos>",
                "pad_token": "<pad>", "unk_token": "<unk>", "tokenizer_class": "GemmaTokenizer"})  # fmt: skip
    write_modules(folder, width, "mean", ["Dense", "Dense", "Normalize"])
    generator = torch.Generator().manual_seed(5)
    matrices = []
    for path, cols, rows in [("2_Dense", width, inner), ("3_Dense", inner, width)]:
        matrix = torch.randn((rows, cols), generator=generator).numpy() * cols**-0.5
        matrices.append(matrix.astype(np.float16))
        (folder / path).mkdir()
        write_json(folder / path / "config.json", {
            "in_features": cols, "out_features": rows, "bias": False,
            "activation_function": "torch.nn.modules.linear.Identity",
        })  # fmt: skip
        save_file({"linear.weight": matrices[-1]}, folder / path / "model.safetensors")

    def vector(ids):
        row = states(model, ids).mean(0)
        for matrix in matrices:
            row = matrix.astype(np.float32) @ row
        return row / np.linalg.norm(row)

    refer_texts(name, vector, tokenizer)


def gemma_tokenizer():
    """SentencePiece with bytes as Gemma's tokenizer.json describes it: a BPE of pieces, in which `▁` is a space."""
    strings = [text for text, _, _ in tiny_tokenizer.sentencepiece(GEMMA[1])]
    vocab = {text: i for i, text in enumerate(strings)}
    merges = [next((text[:cut], text[cut:]) for cut in range(1, len(text))
                   if text[:cut] in vocab and text[cut:] in vocab) for text in tiny_tokenizer.PIECES]  # fmt: skip
    tokenizer = tokenizers.Tokenizer(
        models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    tokenizer.add_special_tokens(["<pad>", "<eos>", "<bos>", "<unk>"])
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A <eos>", special_tokens=[("<bos>", vocab["<bos>"]), ("<eos>", vocab["<eos>"])]
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return tokenizer


MODELS = {
    "qwen3": lambda name: qwen3(name, "F16"),
    "qwen3-Q8_0": lambda name: qwen3(name, "Q8_0"),
    "eurobert": lambda name: eurobert(name, "F16"),
    "bert": lambda name: bert(name, 48, "mean", "F16"),
    "bert-f32": lambda name: bert(name, 48, "mean", "F32"),
    "bert-cls-Q8_0": lambda name: bert(name, 64, "cls", "Q8_0"),
    "bert-hf": lambda name: bert_folder(name, 48, "mean", True),
    "bert-cls-hf": lambda name: bert_folder(name, 48, "cls", False),
    "nomic-bert": lambda name: nomic(name, "F16"),
    "nomic-bert-hf": nomic_folder,
    "gemma-embedding-Q8_0": lambda name: gemma(name, "Q8_0"),
    "gemma-embedding-hf": gemma_folder,
}


def main(wanted):
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name, make in MODELS.items():
        if not wanted or name in wanted:
            make(name)


if __name__ == "__main__":
    main(sys.argv[1:])
