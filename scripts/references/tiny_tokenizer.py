"""Tokenizers of 320 ids for the tiny models: GGUF metadata, and tokenizer.json for folders.

Their strings have no meaning. The vocabularies only have to be complete.
"""

import json

from gguf import TokenType

VOCAB_SIZE = 320
BYTE_LEVEL_MERGES = [
    ("Ġ", "t"), ("h", "e"), ("i", "n"), ("Ġ", "a"), ("r", "e"), ("o", "n"), ("Ġt", "he"),
    ("e", "r"), ("Ġ", "s"), ("a", "t"), ("o", "r"), ("e", "n"), ("Ġ", "c"), ("e", "s"),
    ("Ġ", "w"), ("i", "t"), ("i", "s"), ("a", "n"), ("Ġ", "o"), ("a", "l"), ("e", "d"),
    ("Ġa", "n"), ("in", "g"), ("Ġan", "d"), ("Ġ", "in"),
]  # fmt: skip
PIECES = ["▁t", "he", "in", "▁a", "re", "on", "▁the", "er", "▁s", "at", "or", "en", "▁c"]
LETTERS = "▁etaoinsrhdlucmwfg"


def byte_stand_ins():
    """The printable characters with which GPT-2 represents bytes, in GPT-2's order."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) for byte in printable] + [chr(256 + i) for i in range(len(others))]


def byte_level(specials):
    """Strings and types of a byte-level vocabulary: bytes, merges, `specials`, then fillers."""
    strings = byte_stand_ins() + ["".join(pair) for pair in BYTE_LEVEL_MERGES] + specials
    fillers = [f"<|extra_{i}|>" for i in range(VOCAB_SIZE - len(strings))]
    first_special = len(strings) - len(specials)
    types = [TokenType.NORMAL] * first_special
    types += [TokenType.CONTROL] * (VOCAB_SIZE - first_special)
    return strings + fillers, types


def sentencepiece(specials):
    """Strings, scores and types of a SentencePiece vocabulary with all bytes."""
    rows = [(text, 0.0, TokenType.CONTROL) for text in specials]
    rows += [("<unk>", 0.0, TokenType.UNKNOWN)]
    rows += [(f"<0x{byte:02X}>", 0.0, TokenType.BYTE) for byte in range(256)]
    for rank, text in enumerate([*PIECES, *LETTERS]):
        rows.append((text, -float(rank), TokenType.NORMAL))
    for i in range(VOCAB_SIZE - len(rows)):
        rows.append((f"<unused{i}>", 0.0, TokenType.UNUSED))
    return rows


def add_to_gguf(writer, tokenizer):
    """Writes the keys of `tokenizer`: a pre-tokenizer's name, or `spm`, with its special tokens."""
    kind, specials, bos, eos, add_bos = tokenizer
    if kind == "spm":
        strings, scores, types = zip(*sentencepiece(specials))
        writer.add_tokenizer_model("llama")
        writer.add_tokenizer_pre("default")
        writer.add_token_list(list(strings))
        writer.add_token_scores(list(scores))
        writer.add_token_types(list(types))
        writer.add_unk_token_id(len(specials))
    else:
        strings, types = byte_level(specials)
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(kind)
        writer.add_token_list(strings)
        writer.add_token_types(types)
        writer.add_token_merges([" ".join(pair) for pair in BYTE_LEVEL_MERGES])
    if bos is not None:
        writer.add_bos_token_id(list(strings).index(bos))
    writer.add_eos_token_id(list(strings).index(eos))
    writer.add_add_bos_token(add_bos)
    writer.add_add_eos_token(False)
    if "<pad>" in specials:
        # As in Gemma's files.
        writer.add_add_space_prefix(False)


def write_json(folder, split, specials, bos, eos):
    """`tokenizer.json` and `tokenizer_config.json` of a byte-level tokenizer whose pre-tokenizer
    splits at the regular expression `split`."""
    strings, types = byte_level(specials)
    special_ids = [i for i, kind in enumerate(types) if kind == TokenType.CONTROL]
    added = [
        {"id": i, "content": strings[i], "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True}
        for i in special_ids
    ]  # fmt: skip
    cut = {"type": "Split", "pattern": {"Regex": split}, "behavior": "Isolated", "invert": False}
    byte_level_step = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                       "use_regex": False}  # fmt: skip
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [cut, byte_level_step]},
        "post_processor": None if bos is None else {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": bos, "type_id": 0}},
                       {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                     {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {
                bos: {"id": bos, "ids": [strings.index(bos)], "tokens": [bos]}},
        },
        "decoder": byte_level_step,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None,
            "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {text: i for i, text in enumerate(strings[: special_ids[0]])},
            "merges": [list(pair) for pair in BYTE_LEVEL_MERGES],
        },
    }  # fmt: skip
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": bos is not None,
        "bos_token": bos,
        "eos_token": eos,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 128,
    }
    for name, value in [("tokenizer.json", document), ("tokenizer_config.json", config)]:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        (folder / name).write_text(text + "\n", encoding="utf-8")
