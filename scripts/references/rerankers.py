"""Makes tests/parity/rerankers: tiny random models that score a query beside a document, as GGUF files as llama.cpp's
converter would write them or as folders, and the outputs that transformers computes in float32 from the weights of the
files.

    VENV/bin/python scripts/references/rerankers.py [NAME ...]

Each model gets a NAME.json: `pairs`, each with `query`, `document`, `ids`, `first_tokens` (those of the first type) and the
`outputs` of the classifier. `xlm-roberta-hf` is a folder that makes embeddings, in tests/parity/embeddings.
"""

import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True

import gguf  # noqa: E402
import numpy as np  # noqa: E402
import tokenizers  # noqa: E402
import torch  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402
from tokenizers import models, pre_tokenizers, processors  # noqa: E402
from transformers import (  # noqa: E402
    BertForSequenceClassification,
    Qwen3Config,
    Qwen3Model,
    XLMRobertaConfig,
    XLMRobertaForSequenceClassification,
    XLMRobertaModel,
)

import embeddings  # noqa: E402
import metadata  # noqa: E402
import tiny_tokenizer  # noqa: E402
from architectures import QWEN2, SIZES  # noqa: E402
from embeddings import write_json  # noqa: E402

FOLDER = Path(__file__).parents[2] / "tests/parity/rerankers"
PAIRS = [
    ("the cat", "A cat sat on the hill."),
    ("the cat", "dogs & foxes"),
    ("Is the fox unknowable?", "the quick brown fox is at the end of the hill and the dog is not there"),
    ("a", "b"),
    ("the end", ""),
    ("fox on hill", "x" * 40 + " the end " + "at the hill " * 8),
]
# The template that llama.cpp's converter writes for Qwen3-Reranker, shortened.
TEMPLATE = (
    "<|im_start|>system\nAnswer yes or no.<|im_end|>\n<|im_start|>user\n<Query>: {query}\n"
    "<Document>: {document}<|im_end|>\n<|im_start|>assistant\n"
)
EDGES = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}


def write_pairs(name, pairs):
    for pair in pairs:
        pair["outputs"] = [float(f"{value:.6g}") for value in pair["outputs"]]
    text = json.dumps({"pairs": pairs}, separators=(",", ":"), ensure_ascii=False)
    (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    outputs = np.array([pair["outputs"] for pair in pairs])
    print(f"{name}: outputs {np.round(outputs[:, 0], 3)}")
    assert outputs[:, 0].std() > 0.02


def refer(name, model, tokenizer, without_pooler=False):
    """The outputs of a classifier for the pairs, with the types of tokens that its tokenizer tells."""
    has_types = model.config.type_vocab_size > 1
    pairs = []
    for query, document in PAIRS:
        encoding = tokenizer.encode(query, document)
        ids, second = encoding.ids, encoding.sequence_ids.index(1) if document else len(encoding.ids) - 1
        types = [int(has_types and token >= second) for token in range(len(ids))]
        if has_types:
            assert encoding.type_ids == types, (query, document)
        inputs = {"input_ids": torch.tensor([ids]), "token_type_ids": torch.tensor([types])}
        with torch.no_grad():
            if without_pooler:
                first = model.bert(**inputs).last_hidden_state[:, 0]
                outputs = model.classifier(first)[0].numpy()
            else:
                outputs = model(**inputs).logits[0].numpy()
        pairs.append({"query": query, "document": document, "ids": ids, "first_tokens": second,
                      "outputs": list(outputs)})  # fmt: skip
    if has_types:
        changed = dict(input_ids=torch.tensor([pairs[0]["ids"]]))
        with torch.no_grad():
            without = model(**changed).logits[0, 0] if not without_pooler else None
        assert without is None or abs(float(without) - pairs[0]["outputs"][0]) > 1e-3
    write_pairs(name, pairs)


def round_halves(model):
    for parameter in model.parameters():
        parameter.data = parameter.data.half().float()


def write_folder(name, model, write_tokenizer):
    """A folder as transformers saves it, with float16 weights."""
    folder = embeddings.new_folder(name)
    halves = {key: value.half().numpy() for key, value in model.state_dict().items()}
    save_file(halves, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads(model.config.to_json_string(use_diff=False))
    kept = ["hidden_act", "hidden_size", "id2label", "intermediate_size", "layer_norm_eps",
            "max_position_embeddings", "model_type", "num_attention_heads", "num_hidden_layers", "pad_token_id",
            "position_embedding_type", "type_vocab_size", "vocab_size"]  # fmt: skip
    members = {key: config[key] for key in kept if key in config}
    write_json(folder / "config.json", {"architectures": [type(model).__name__], **members})
    write_tokenizer(folder)


def bert_model(name, width):
    config = embeddings.bert_config(width)
    config.num_labels = 1
    model = BertForSequenceClassification(config).eval()
    embeddings.fill(model, name)
    return model


def bert_tokenizer():
    return embeddings.bert_tokenizer()


def bert_folder(name):
    model = bert_model(name, 48)
    round_halves(model)
    write_folder(name, model, embeddings.write_bert_tokenizer)
    refer(name, model, bert_tokenizer())


def add_encoder_keys(writer, config, positions):
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(positions)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_layer_norm_eps(config.layer_norm_eps)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.RANK)
    writer.add_classifier_output_labels(["LABEL_0"])


def body_names(state, prefix, layers):
    """Pairs of a checkpoint's name and the file's, of the encoder."""
    body = {key.removeprefix(prefix): key for key in state if key.startswith(prefix)}
    found = embeddings.gguf_names("bert", layers, body, embeddings.BERT_SKIPPED)
    return {body[key]: gguf_name for key, gguf_name in found.items()}


def bert(name, file_type, has_pooler):
    """A file with the hidden layer of the classifier, or one as the converter writes it: without."""
    model = bert_model(name, 48)
    state = model.state_dict()
    names = body_names(state, "bert.", model.config.num_hidden_layers)
    for part in ["weight", "bias"]:
        names[f"classifier.{part}"] = f"cls.output.{part}"
        if has_pooler:
            names[f"bert.pooler.dense.{part}"] = f"cls.{part}"
    tensors = {gguf_name: state[key].numpy() for key, gguf_name in names.items()}

    def add_keys(writer):
        add_encoder_keys(writer, model.config, model.config.max_position_embeddings)
        embeddings.add_bert_tokenizer(writer)

    rounded = embeddings.write_gguf(name, "bert", tensors, file_type, add_keys)
    model.load_state_dict({key: torch.from_numpy(rounded[names[key]]) for key in names}, strict=False)
    refer(name, model, bert_tokenizer(), without_pooler=not has_pooler)


def unigram():
    """Rows of a SentencePiece unigram vocabulary: strings and scores."""
    words = ["▁the", "▁cat", "▁fox", "▁hill", "▁is", "▁at", "▁on", "▁end", "▁a", "qu", "ick", "at", "ing", "ow"]
    letters = [*"abcdefghijklmnopqrstuvwxyzACDI.,!?&"]
    rows = [(text, 0.0) for text in EDGES]
    rows += [(text, -2.0 - 0.07 * rank) for rank, text in enumerate(words)]
    rows += [("▁", -4.0)] + [(text, -5.0 - 0.11 * rank) for rank, text in enumerate(letters)]
    return rows + [("<mask>", 0.0)]


def xlm_tokenizer():
    tokenizer = tokenizers.Tokenizer(models.Unigram(unigram(), unk_id=EDGES["<unk>"], byte_fallback=False))
    tokenizer.add_special_tokens([*EDGES, "<mask>"])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return tokenizer


def write_xlm_tokenizer(folder):
    xlm_tokenizer().save(str(folder / "tokenizer.json"), pretty=False)
    write_json(folder / "tokenizer_config.json",
               {"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>",
                "pad_token": "<pad>", "unk_token": "<unk>", "tokenizer_class": "XLMRobertaTokenizer"})  # fmt: skip


def add_xlm_tokenizer(writer):
    """Writes the keys of the tokenizer as the converter does."""
    control, normal, unknown = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL, gguf.TokenType.UNKNOWN
    strings, scores = zip(*unigram())
    kinds = {"<unk>": unknown, **{text: control for text in ["<s>", "<pad>", "</s>", "<mask>"]}}
    writer.add_token_type_count(1)
    writer.add_tokenizer_model("t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(list(strings))
    writer.add_token_scores(list(scores))
    writer.add_token_types([kinds.get(text, normal) for text in strings])
    writer.add_add_space_prefix(True)
    writer.add_remove_extra_whitespaces(True)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(3)
    writer.add_sep_token_id(2)
    writer.add_pad_token_id(1)
    writer.add_mask_token_id(len(strings) - 1)
    writer.add_add_bos_token(True)
    writer.add_add_sep_token(True)
    writer.add_add_eos_token(True)


def xlm_config(labels):
    config = XLMRobertaConfig(
        vocab_size=len(unigram()), hidden_size=48, intermediate_size=104, num_hidden_layers=2,
        num_attention_heads=3, max_position_embeddings=132, type_vocab_size=1, pad_token_id=1,
        bos_token_id=0, eos_token_id=2, layer_norm_eps=1e-5, num_labels=labels,
    )  # fmt: skip
    config._attn_implementation = "eager"
    return config


def xlm_model(name):
    model = XLMRobertaForSequenceClassification(xlm_config(1)).eval()
    embeddings.fill(model, name)
    return model


def xlm_folder(name):
    model = xlm_model(name)
    round_halves(model)
    write_folder(name, model, write_xlm_tokenizer)
    refer(name, model, xlm_tokenizer())


def xlm(name, file_type):
    model = xlm_model(name)
    state = model.state_dict()
    names = body_names(state, "roberta.", model.config.num_hidden_layers)
    for part in ["weight", "bias"]:
        names[f"classifier.dense.{part}"] = f"cls.{part}"
        names[f"classifier.out_proj.{part}"] = f"cls.output.{part}"
    # The converter leaves out the positions before the first one.
    first = model.config.pad_token_id + 1
    tensors = {gguf_name: state[key].numpy() for key, gguf_name in names.items()}
    tensors["position_embd.weight"] = tensors["position_embd.weight"][first:]
    # Older versions wrote rows of one element without their second dimension.
    for name_of_row in ["token_types.weight", "cls.output.weight"]:
        tensors[name_of_row] = tensors[name_of_row].reshape(-1)

    def add_keys(writer):
        add_encoder_keys(writer, model.config, model.config.max_position_embeddings - first)
        add_xlm_tokenizer(writer)

    rounded = embeddings.write_gguf(name, "bert", tensors, file_type, add_keys)
    rounded["position_embd.weight"] = np.concatenate(
        [np.zeros((first, model.config.hidden_size), np.float32), rounded["position_embd.weight"]]
    )
    state = {key: torch.from_numpy(rounded[names[key]]).reshape(state[key].shape) for key in names}
    model.load_state_dict(state, strict=False)
    refer(name, model, xlm_tokenizer())


def xlm_embeddings(name):
    """A folder as sentence-transformers saves multilingual E5: the body alone, the mean of its tokens."""
    folder = embeddings.new_folder(name)
    model = XLMRobertaModel(xlm_config(2)).eval()
    embeddings.fill(model, name)
    round_halves(model)
    write_folder(name, model, write_xlm_tokenizer)
    embeddings.write_modules(folder, model.config.hidden_size, "mean", ["Normalize"])
    tokenizer = xlm_tokenizer()
    inputs = []
    for text in [text for pair in PAIRS for text in pair if text]:
        ids = tokenizer.encode(text).ids
        vector = embeddings.pooled(embeddings.states(model, ids), "mean")
        inputs.append({"text": text, "ids": ids, "vector": vector})
    embeddings.write_references(name, inputs)


def qwen3(name, file_type):
    """Like Qwen3-Reranker: the logits of "yes" and "no" after a prompt."""
    config = Qwen3Config(**{**SIZES, "max_position_embeddings": 256}, head_dim=32, rope_theta=1e6, attn_implementation="eager")
    model = Qwen3Model(config).eval()
    embeddings.fill(model, name)
    names = embeddings.gguf_names("qwen3", config.num_hidden_layers, model.state_dict())
    tensors = {names[key]: value.numpy() for key, value in model.state_dict().items()}
    generator = torch.Generator().manual_seed(3)
    tensors["cls.output.weight"] = torch.randn((2, 64), generator=generator).numpy() / 8

    def add_keys(writer):
        writer.add_pooling_type(gguf.PoolingType.RANK)
        writer.add_classifier_output_labels(["yes", "no"])
        writer.add_chat_template([{"name": "rerank", "template": TEMPLATE}])
        metadata.add_to_gguf(writer, "qwen3", config)
        tiny_tokenizer.add_to_gguf(writer, QWEN2)

    rounded = embeddings.write_gguf(name, "qwen3", tensors, file_type, add_keys)
    model.load_state_dict({key: torch.from_numpy(rounded[names[key]]) for key in names})
    tokenizer = qwen_tokenizer()
    pairs = []
    for query, document in PAIRS:
        ids = tokenizer.encode(TEMPLATE.replace("{query}", query).replace("{document}", document)).ids
        outputs = rounded["cls.output.weight"] @ embeddings.states(model, ids)[-1]
        pairs.append({"query": query, "document": document, "ids": ids, "first_tokens": len(ids),
                      "outputs": list(outputs)})  # fmt: skip
    write_pairs(name, pairs)


def qwen_tokenizer():
    """The byte-level tokenizer of the file, with the pre-tokenizer of Qwen2."""
    strings, types = tiny_tokenizer.byte_level(QWEN2[1])
    vocab = {text: i for i, text in enumerate(strings)}
    bpe = models.BPE(vocab, tiny_tokenizer.BYTE_LEVEL_MERGES)
    tokenizer = tokenizers.Tokenizer(bpe)
    controls = [text for text, kind in zip(strings, types) if kind == gguf.TokenType.CONTROL]
    tokenizer.add_special_tokens(controls)
    split = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(split), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])  # fmt: skip
    return tokenizer


MODELS = {
    "bert-hf": bert_folder,
    "bert": lambda name: bert(name, "F16", True),
    "bert-no-hidden": lambda name: bert(name, "F16", False),
    "xlm-roberta": lambda name: xlm(name, "F16"),
    "xlm-roberta-rank-hf": xlm_folder,
    "xlm-roberta-hf": xlm_embeddings,
    "qwen3": lambda name: qwen3(name, "F16"),
}


def main(wanted):
    of_embeddings = embeddings.FOLDER
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name, make in MODELS.items():
        if not wanted or name in wanted:
            embeddings.FOLDER = of_embeddings if make is xlm_embeddings else FOLDER
            make(name)


if __name__ == "__main__":
    main(sys.argv[1:])
