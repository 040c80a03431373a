"""Compares `examples/tokenize.rs` with PyPI's `tokenizers` and `sentencepiece` on random text, and
writes the vectors of `src/text/vectors`. Never run by the tests.

    pip install tokenizers sentencepiece gguf protobuf
    python scripts/vectors/tokenizer_oracle.py --binary target/debug/examples/tokenize \
        --models ../shared/models [--strings 100000] [--only NAME...] [--write src/text/vectors]

The references are built from the files' own tokens. Nothing is downloaded.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as proto
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
MARKS = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + MARKS
QWEN2 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + MARKS
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CASES = [rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+", rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*"]
PATHS = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT4O = "|".join(case + CONTRACTIONS + "?" for case in CASES) + r"|\p{N}{1,3}|" + PATHS
HAN = r"&&[^\p{Han}]]"
KIMI = (
    r"[\p{Han}]+|"
    + "|".join(case.replace(r"\p{M}]", r"\p{M}" + HAN) + CONTRACTIONS + "?" for case in CASES)
    + r"|\p{N}{1,3}|" + MARKS
)
DEEPSEEK3 = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
CJK = "[一-龥\u3040-ゟ゠-ヿ]+"
THREES = r"\d{1,3}(?=(?:\d{3})*\b)"

# The patterns of each pre-tokenizer, from the models' own tokenizer.json.
CUTS = {
    "gpt-2": [GPT2],
    "mpt": [GPT2],
    "llama-bpe": [LLAMA3],
    "dbrx": [LLAMA3],
    "jais-2": [LLAMA3.replace(r"\s+(?!\S)|\s+", "|".join(
        rf"\s{{{count}}}(?!\S)" for count in [512, 256, 128, 64, 32, 16, 8, 4, "1,2"]) + r"|\s{1}")],
    "minicpm5": [r"\p{N}{1,3}", LLAMA3.replace("{1,3}", "+")],
    "qwen2": [QWEN2],
    "stablelm2": [QWEN2],
    "qwen35": [QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"\s\p{L}\p{N}]+", r"\s\p{L}\p{M}\p{N}]+")],
    "laguna": [(r"(?:\r?\n)+(?!\r?\n)", "merged_with_next"), QWEN2],
    "ufakzeka": [QWEN2[len(CONTRACTIONS) + 1 :]],
    "seed-coder": [QWEN2.replace(r"\s\p{L}\p{N}]+[\r\n]*", r"\s\p{L}\p{N}\r\n]+")],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"],
    "exaone-moe": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"],
    "smollm": [r"\p{N}", GPT2],
    "command-r": [r"\p{N}", GPT2],
    "gpt-4o": [GPT4O],
    "tiny_aya": [THREES, GPT4O],
    "kimi-k2": [KIMI],
    "tekken": ["|".join(CASES) + r"|\p{N}|" + PATHS],
    "deepseek-v3": [r"\p{N}{1,3}", CJK, DEEPSEEK3],
    "spark2_5": [r"\p{N}{1,3}", CJK, DEEPSEEK3.replace(r"[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+", r"[\p{P}\p{S}]+|[\r\n]"), r"\p{N}"],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-\ud7ff]+", r"\p{N}"],
    "falcon": [r"[\p{P}$+<=>^~|`]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
    "bloom": [BLOOM],
    "viking": [BLOOM, r"\p{N}"],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "chameleon": ["<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )", r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]", GPT2],
    "default": [r"[\p{P}$+<=>^~|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
}
NFC = {"mpt", "qwen2", "qwen35", "command-r"}
IGNORE_MERGES = {"llama-bpe", "minicpm5", "gpt-4o", "kimi-k2", "tekken"}

WORDS = "the quick brown fox jumps over a lazy dog while seven wizards make toxic brew for evil queens and jack Hello WORLD camelCase HTTPServer Ünïcödé naïve straße ſtop".split()


def random_text(rng, special):
    """A random text composed of parts that are difficult for tokenizers."""
    def of(low, high, most):
        return "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, most)))

    def pick(choices, most=1):
        return "".join(rng.choice(choices) for _ in range(rng.randint(1, most)))

    kinds = [
        lambda: " " + pick(WORDS),
        lambda: pick(WORDS),
        lambda: pick(["I'm", "we'LL", "they've", "it's", "'S", "d'", "'ſ", "''re", "can't", "’s"]),
        lambda: pick([" ", "  ", "\t", "\n", "\r\n", "\n\n", "\u00a0", "\u3000", "\u2028", "\u0085", "\v"], 6),
        lambda: of(0x30, 0x39, 9),
        lambda: pick("٣۷५๔Ⅷ½²③〇", 4),
        lambda: pick("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", 5),
        lambda: of(0x20, 0x7E, 8),
        lambda: of(0xA1, 0x24F, 5),
        lambda: of(0x391, 0x3A1, 4) + of(0x3B1, 0x3C9, 4),
        lambda: of(0x410, 0x44F, 6),
        lambda: of(0x4E00, 0x9FA5, 5),
        lambda: of(0x3041, 0x3096, 4) + of(0x30A1, 0x30FA, 3),
        lambda: of(0xAC00, 0xD7A3, 4),
        lambda: of(0x1100, 0x1112, 1) + of(0x1161, 0x1175, 1) + of(0x11A8, 0x11C2, 1),
        lambda: of(0x5D0, 0x5EA, 5),
        lambda: of(0x621, 0x64A, 5) + of(0x64B, 0x652, 2),
        lambda: of(0x905, 0x939, 3) + of(0x93E, 0x94D, 2),
        lambda: of(0xE01, 0xE30, 3) + of(0xE34, 0xE3A, 1),
        lambda: pick("aeioucnsAEIOU") + of(0x300, 0x345, 3),
        lambda: pick(["👩‍👩‍👧", "🏳️‍🌈", "👍🏽", "🇩🇪🇫🇷", "🦙", "✅", "❤️", "1️⃣", "😶‍🌫️"], 3),
        lambda: of(0xE000, 0xE010, 2),
        lambda: pick("\x00\x01\x07\x1b\x7f\u200b\u200d\ufeff\ufffd\ufffe\U0010ffff"),
        lambda: of(0x1D400, 0x1D433, 3),
        lambda: pick(["▁", "Ġ", "Ċ", "<0x41>", "<0xC3>", "▁▁", "ﬁ", "Å", "Ｔｅｓｔ", "。，、", "!", "…"], 2),
        lambda: pick(special) if special else "",
        lambda: pick(special)[: rng.randint(1, 5)] if special else "<|",
    ]
    return "".join(rng.choice(kinds)() for _ in range(rng.randint(1, 9)))


LONG = ["a" * 5000, " " * 5000 + "x", "7" * 5000, "7" * 5000 + "x", "🦙" * 2000, "\n" * 5000 + " x", "e\u0301\u0323" * 1500, "漢字" * 2000, "-" * 5000, "aB" * 2500, "a " * 2500]


def texts(name, count, special):
    rng = random.Random(name)
    return [random_text(rng, special) for _ in range(count)] + LONG


class GgufVocabulary:
    """The tokenizer metadata of a GGUF file."""

    def __init__(self, path):
        fields = gguf.GGUFReader(path).fields
        def get(key, default=None):
            return fields[key].contents() if key in fields else default
        self.tokens = get("tokenizer.ggml.tokens")
        self.kinds = get("tokenizer.ggml.token_type") or [1] * len(self.tokens)
        self.scores = get("tokenizer.ggml.scores")
        self.merges = get("tokenizer.ggml.merges")
        self.pre = get("tokenizer.ggml.pre", "default")
        self.adds_prefix = get("tokenizer.ggml.add_space_prefix", True)
        self.is_phi3 = "phi3" in get("general.name", "").lower().replace("-", "")

    def special(self):
        return [text for text, kind in zip(self.tokens, self.kinds) if kind in (2, 3, 4)]


class ByteLevel:
    """`tokenizers` with the tokens and merges of a byte-level vocabulary."""

    def __init__(self, tokens, merges, pre, special):
        ids = {}
        for index, text in enumerate(tokens):
            ids.setdefault(text, index)
        merges = [(m[: m.index(" ", 1)], m[m.index(" ", 1) + 1 :]) for m in merges]
        self.tokenizer = Tokenizer(models.BPE(ids, merges, ignore_merges=pre in IGNORE_MERGES))
        cuts = [cut if isinstance(cut, tuple) else (cut, "isolated") for cut in CUTS[pre]]
        self.tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(pattern), behavior) for pattern, behavior in cuts]
            + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        if pre in NFC:
            self.tokenizer.normalizer = normalizers.NFC()
        self.tokenizer.decoder = decoders.ByteLevel()
        self.tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text in special])

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids):
        return self.tokenizer.decode(ids, skip_special_tokens=False)


def without_broken_bytes(text):
    """None for a text whose byte tokens are not valid characters: `tokenizers` then replaces every byte
    of the run, even those of valid characters, while inpage follows the WHATWG rule."""
    return None if "\ufffd" in text else text


class File(ByteLevel):
    """`tokenizers` with a tokenizer.json."""

    def __init__(self, path):
        self.tokenizer = Tokenizer.from_file(str(path))

    def decode(self, ids):
        return without_broken_bytes(super().decode(ids))

    def special(self):
        return [token.content for token in self.tokenizer.get_added_tokens_decoder().values()]


class SentencePiece:
    """`sentencepiece` with the pieces and scores of a GGUF file; the texts between special tokens
    are encoded one by one, as llama.cpp does."""

    def __init__(self, vocabulary):
        model = proto.ModelProto()
        unknown = vocabulary.tokens.index("<unk>")
        for index, text in enumerate(vocabulary.tokens):
            # There must be exactly one unknown piece. Other special tokens are found by the split into parts.
            kind = 3 if vocabulary.kinds[index] == 2 else vocabulary.kinds[index]
            model.pieces.add(piece=text, type=2 if index == unknown else kind, score=vocabulary.scores[index])
        model.trainer_spec.model_type = proto.TrainerSpec.BPE
        model.trainer_spec.byte_fallback = 6 in vocabulary.kinds
        model.trainer_spec.vocab_size = len(vocabulary.tokens)
        model.normalizer_spec.name = "identity"
        model.normalizer_spec.add_dummy_prefix = vocabulary.adds_prefix
        model.normalizer_spec.remove_extra_whitespaces = False
        self.processor = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
        special = sorted(filter(None, vocabulary.special()), key=len, reverse=True)
        self.parts = re.compile("(" + "|".join(map(re.escape, special)) + ")")
        self.ids = {text: index for index, text in reversed(list(enumerate(vocabulary.tokens)))}
        self.is_phi3 = vocabulary.is_phi3

    def encode(self, text):
        ids, strip = [], False
        for index, part in enumerate(self.parts.split(text)):
            if index % 2:
                ids.append(self.ids[part])
                strip = self.is_phi3 and part not in ("<unk>", "<s>", "<|endoftext|>")
                continue
            # str.strip removes Unicode's white space and four ASCII separators.
            ids += self.processor.encode(part.lstrip() if strip else part)
        return ids

    def decode(self, ids):
        # sentencepiece omits control tokens and decodes the unknown token to another character.
        hidden = any(self.processor.is_control(i) or self.processor.is_unknown(i) for i in ids)
        return None if hidden else self.processor.decode(ids)


class Unigram(SentencePiece):
    """`sentencepiece` with its own model file."""

    def __init__(self, path):
        self.processor = sentencepiece.SentencePieceProcessor(model_file=str(path))

    def encode(self, text):
        return self.processor.encode(text)


def ours(binary, path, strings):
    lines = "".join(json.dumps(text) + "\n" for text in strings)
    done = subprocess.run([binary, path], input=lines, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{path}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.split("\n")[:-1]]


def compare(name, reference, path, strings, binary):
    """Prints how many strings differ; returns the ids of the reference."""
    expected = [reference.encode(text) for text in strings]
    wrong_ids, wrong_texts, shown = 0, 0, 0
    for text, ids, answer in zip(strings, expected, ours(binary, path, strings), strict=True):
        decoded = reference.decode(ids)
        bad_ids = answer["ids"] != ids
        bad_text = not bad_ids and decoded is not None and answer["text"] != decoded
        wrong_ids += bad_ids
        wrong_texts += bad_text
        if (bad_ids or bad_text) and shown < 3:
            shown += 1
            print(f"  {text!r}\n    reference {ids} {decoded!r}\n    ours      {answer}")
    print(f"{name}: {len(strings)} strings, {wrong_ids} with other ids, {wrong_texts} with another text", flush=True)
    return expected


def training_text(highest=0x10FFFF):
    """Lines to train small vocabularies on; characters above `highest` stay unknown."""
    rng = random.Random("training")
    lines = [random_text(rng, []) for _ in range(4000)] + [" ".join(rng.choices(WORDS, k=12)) for _ in range(2000)]
    return ["".join(character for character in line if 0 < ord(character) <= highest) for line in lines]


def write_gguf(path, model, tokens, extra):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    writer.add_token_list(tokens)
    extra(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def small_byte_level():
    """A byte-level vocabulary of our own: tokens and merges."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r" ?\p{L}+| ?\p{N}+|\s+"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False)
    tokenizer.train_from_iterator(training_text(), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    return tokens + ["<|endoftext|>"], [" ".join(merge) for merge in model["merges"]]


def small_files(folder):
    """tokenizer.json files of families that process text differently: name to folder."""
    sign = normalizers.Replace(" ", "▁")
    families = {
        "gemma-like": (sign, pre_tokenizers.Split(" ", "merged_with_previous"), decoders.Replace("▁", " ")),
        "llama-like": (normalizers.Sequence([normalizers.Prepend("▁"), sign]), None, decoders.Strip(" ", 1, 0)),
        "mistral-like": (None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False), decoders.Strip(" ", 1, 0)),
        "split-like": (normalizers.NFKC(), pre_tokenizers.Metaspace(prepend_scheme="always", split=True), decoders.Metaspace()),
        "falcon-like": (None, pre_tokenizers.Sequence([
            pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]), decoders.ByteLevel()),
        "roberta-like": (normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()]), pre_tokenizers.ByteLevel(add_prefix_space=True), decoders.ByteLevel()),
        "unigram": (normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]), pre_tokenizers.Metaspace(), decoders.Metaspace()),
    }
    found = {}
    for name, (normalizer, pre, decoder) in families.items():
        byte_level = isinstance(decoder, decoders.ByteLevel)
        fallback = not byte_level and name != "split-like"
        special = [f"<0x{byte:02X}>" for byte in range(256)] if fallback else []
        if name == "unigram":
            tokenizer = Tokenizer(models.Unigram())
            trainer = trainers.UnigramTrainer(vocab_size=700, special_tokens=["<unk>", "<s>"], unk_token="<unk>", show_progress=False)
        else:
            tokenizer = Tokenizer(models.BPE(byte_fallback=fallback, unk_token=None if byte_level else "<unk>", fuse_unk=not byte_level))
            alphabet = sorted(pre_tokenizers.ByteLevel.alphabet()) if byte_level else []
            trainer = trainers.BpeTrainer(vocab_size=620, initial_alphabet=alphabet, limit_alphabet=120, special_tokens=["<unk>", "<s>"] + special, show_progress=False)
        if normalizer:
            tokenizer.normalizer = normalizer
        # Training needs words. The result is then configured as in the family.
        tokenizer.pre_tokenizer = pre or pre_tokenizers.Split(Regex("▁[^▁]*"), "isolated")
        tokenizer.train_from_iterator(training_text(0x24F), trainer)
        file = json.loads(tokenizer.to_str())
        if pre is None:
            file["pre_tokenizer"] = None
        # Byte tokens are not recognized in text; "<s>" drops the space before it.
        file["added_tokens"] = [t for t in file["added_tokens"] if not t["content"].startswith("<0x")]
        for token in file["added_tokens"]:
            token["lstrip"] = token["content"] == "<s>"
        file["decoder"] = json.loads(decoders_of(name, decoder))
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "tokenizer.json").write_text(json.dumps(file, ensure_ascii=False))
        found[name] = folder / name
    return found


def decoders_of(name, decoder):
    tokenizer = Tokenizer(models.BPE())
    if name in ("gemma-like", "llama-like", "mistral-like"):
        strip = [decoder] if name != "gemma-like" else []
        tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()] + strip)
    else:
        tokenizer.decoder = decoder
    return json.dumps(json.loads(tokenizer.to_str())["decoder"])


def small_unigram(folder):
    """A sentencepiece unigram model with NFKC rules, as its own file and as a GGUF file."""
    text = folder / "text.txt"
    text.write_text("\n".join(line.replace("\n", " ") for line in training_text(0x24F)))
    prefix = folder / "unigram"
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(prefix), vocab_size=1200, model_type="unigram", hard_vocab_limit=False,
        normalization_rule_name="nmt_nfkc", pad_id=0, eos_id=1, unk_id=2, bos_id=-1, minloglevel=2)
    model = proto.ModelProto()
    model.ParseFromString(Path(f"{prefix}.model").read_bytes())
    def extra(writer):
        writer.add_token_scores([piece.score for piece in model.pieces])
        writer.add_token_types([piece.type for piece in model.pieces])
        writer.add_add_space_prefix(True)
        writer.add_remove_extra_whitespaces(True)
        writer.add_precompiled_charsmap(model.normalizer_spec.precompiled_charsmap)
    path = folder / "unigram.gguf"
    write_gguf(path, "t5", [piece.piece for piece in model.pieces], extra)
    return Unigram(f"{prefix}.model"), path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--strings", type=int, default=100_000)
    parser.add_argument("--only", nargs="+", default=[""])
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    wanted = lambda name: any(part in name for part in options.only)
    vectors = {}

    def run(name, reference, path, special):
        strings = texts(name, options.strings, special)
        expected = compare(name, reference, path, strings, options.binary)
        short = [(text, ids) for text, ids in zip(strings, expected) if 4 < len(ids) < 40]
        vectors[name] = [[text, ids] for text, ids in short[:24]]

    for path in sorted(options.models.glob("vocab/*.gguf")) + sorted(options.models.glob("*/*-F16.gguf")):
        name = path.stem
        if not wanted(name) or name.startswith("mmproj"):
            continue
        vocabulary = GgufVocabulary(path)
        if vocabulary.merges is None:
            reference = SentencePiece(vocabulary)
        else:
            reference = ByteLevel(vocabulary.tokens, vocabulary.merges, vocabulary.pre, vocabulary.special())
        run(name, reference, path, vocabulary.special())
    for name in ["ts4m-hf", "stories260K"]:
        if wanted(name):
            reference = File(options.models / name / "tokenizer.json")
            run(name, reference, options.models / name, reference.special())
    if wanted("pre-tokenizers"):
        tokens, merges = small_byte_level()
        for pre in CUTS:
            def extra(writer):
                writer.add_tokenizer_pre(pre)
                writer.add_token_merges(merges)
                writer.add_token_types([1] * (len(tokens) - 1) + [3])
                writer.add_add_bos_token(False)
            path = folder / f"{pre}.gguf"
            write_gguf(path, "gpt2", tokens, extra)
            special = ["<|endoftext|>"]
            run(f"pre-tokenizers {pre}", ByteLevel(tokens, merges, pre, special), path, special)
        vectors["tokens"], vectors["merges"] = tokens, merges
    if wanted("files"):
        for name, path in small_files(folder).items():
            reference = File(path / "tokenizer.json")
            run(f"files {name}", reference, path, reference.special())
            vectors[f"files {name}"] = {"tokenizer": json.loads((path / "tokenizer.json").read_text()), "texts": vectors[f"files {name}"]}
    if wanted("unigram.gguf"):
        reference, path = small_unigram(folder)
        run("unigram.gguf", reference, path, [])

    if options.write:
        options.write.mkdir(exist_ok=True)
        pre = {name.removeprefix("pre-tokenizers "): value for name, value in vectors.items() if name.startswith("pre-")}
        dump = lambda name, value: (options.write / name).write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")
        dump("pre_tokenizers.jsonl", {"tokens": vectors["tokens"], "merges": vectors["merges"], "texts": pre})
        dump("files.jsonl", {name.removeprefix("files "): value for name, value in vectors.items() if name.startswith("files ")})


if __name__ == "__main__":
    main()
