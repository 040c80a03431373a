//! The table of pre-tokenizers: how text is split before BPE, by `tokenizer.ggml.pre`. A new one is a new
//! entry.

use super::splitter::{Behavior, Splitter};
use crate::{Error, Result};

/// One entry: the names that select it and its properties.
///
/// Names and `adds_bos` follow `llama_vocab::impl::load` of llama.cpp. The patterns are those of the
/// models' own `tokenizer.json`, and so are `ignore_merges` and `is_nfc` where the two differ.
pub struct PreTokenizer {
    names: &'static [&'static str],
    /// The regular expressions, in the order in which they cut. Matches and the text between them are pieces.
    cuts: &'static [&'static str],
    /// Whether a piece that is itself a token is used whole, regardless of the merges.
    pub ignore_merges: bool,
    /// Whether a start-of-text token is added when the file does not say.
    pub adds_bos: bool,
    /// Whether the text is converted to Unicode normalization form C first.
    pub is_nfc: bool,
    /// Whether the tokens are spelled as in SentencePiece, with ▁ for a space and `<0xHH>` for a byte without a
    /// token, not in GPT-2's stand-ins for bytes.
    pub is_sentencepiece: bool,
}

pub const GPT2: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const MINICPM5: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const JAIS2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const UFAKZEKA: &str =
    r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const SEED_CODER: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+";
const BAILING: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+";
const EXAONE_MOE: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+";
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const YOUTU: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const KIMI: &str = r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK3: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;
const SPARK: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+"##;
const BLOOM: &str = r" ?[^(\s|.,!?…。，、।۔،)]+";
/// Cased letters, as of the Unicode version that DeepSeek's list was made from.
const CASED: &str = "\\s?[A-Za-z\u{B5}\u{C0}-\u{D6}\u{D8}-\u{F6}\u{F8}-\u{1BA}\u{1BC}-\u{1BF}\u{1C4}-\u{293}\u{295}-\u{2AF}\u{370}-\u{373}\u{376}\u{377}\u{37B}-\u{37D}\u{37F}\u{386}\u{388}-\u{38A}\u{38C}\u{38E}-\u{3A1}\u{3A3}-\u{3F5}\u{3F7}-\u{481}\u{48A}-\u{52F}\u{531}-\u{556}\u{10A0}-\u{10C5}\u{13A0}-\u{13F5}\u{13F8}-\u{13FD}\u{1C90}-\u{1CBA}\u{1CBD}-\u{1CBF}\u{1D00}-\u{1D2B}\u{1D6B}-\u{1D77}\u{1D79}-\u{1D9A}\u{1E00}-\u{1F15}\u{1F18}-\u{1F1D}\u{1F20}-\u{1F45}\u{1F48}-\u{1F4D}\u{1F50}-\u{1F57}\u{1F59}\u{1F5B}\u{1F5D}\u{1F5F}-\u{1F7D}\u{1F80}-\u{1FB4}\u{1FB6}-\u{1FBC}\u{1FBE}\u{1FC2}-\u{1FC4}\u{1FC6}-\u{1FCC}\u{1FD0}-\u{1FD3}\u{1FD6}-\u{1FDB}\u{1FE0}-\u{1FEC}\u{1FF2}-\u{1FF4}\u{1FF6}-\u{1FFC}\u{2102}\u{2107}\u{210A}-\u{2113}\u{2115}\u{2119}-\u{211D}\u{2124}\u{2126}\u{2128}\u{212A}-\u{212D}\u{212F}-\u{2134}\u{2139}\u{213C}-\u{213F}\u{2145}-\u{2149}\u{214E}\u{2183}\u{2184}\u{2C00}-\u{2C7B}\u{2C7E}-\u{2CE4}\u{2CEB}-\u{2CEE}\u{2CF2}\u{2CF3}\u{A640}-\u{A66D}\u{A680}-\u{A69B}\u{A722}-\u{A76F}\u{A771}-\u{A787}\u{A78B}-\u{A78E}\u{AB70}-\u{ABBF}\u{FB00}-\u{FB06}\u{FB13}-\u{FB17}\u{FF21}-\u{FF3A}\u{FF41}-\u{FF5A}\u{10400}-\u{1044F}\u{104B0}-\u{104D3}\u{104D8}-\u{104FB}\u{10C80}-\u{10CB2}\u{10CC0}-\u{10CF2}\u{118A0}-\u{118DF}\u{1E900}-\u{1E943}]+";
const DEEPSEEK_MARKS: &str =
    "\\s?[!-/:-~\u{FF01}-\u{FF0F}\u{FF1A}-\u{FF5E}\u{2018}-\u{201F}\u{3000}-\u{3002}]+";
const CJK: &str = "[\u{4E00}-\u{9FA5}\u{3040}-\u{309F}\u{30A0}-\u{30FF}]+";
const CJK_AND_HANGUL: &str = "[\u{4E00}-\u{9FA5}\u{800}-\u{4E00}\u{AC00}-\u{D7FF}]+";
const ASIAN: &str = "[\u{4E00}-\u{9FFF}\u{3400}-\u{4DBF}\u{F900}-\u{FAFF}\u{3040}-\u{309F}\u{30A0}-\u{30FF}\u{FF65}-\u{FF9F}\u{2F00}-\u{2FDF}\u{E40}-\u{E7F}\u{E80}-\u{EFF}\u{1780}-\u{17FF}\u{1000}-\u{109F}\u{AA60}-\u{AA7F}\u{A9E0}-\u{A9FF}\u{AC00}-\u{D7AF}\u{1100}-\u{11FF}]+";
const YOUTU_SCRIPTS: &str = "[\u{AC00}-\u{D7A3}\u{3131}-\u{318E}]+|[\u{FF01}\u{2026}\u{201C}\u{201D}\u{2018}\u{2019}\u{2014}\u{FF1A}\u{FF1B}\u{FF0C}\u{3001}-\u{303F}\u{FE30}-\u{FE4F}]+|[\u{3105}-\u{312F}]+|[\u{4E00}-\u{9FA5}\u{3040}-\u{309F}\u{30A0}-\u{30FF}]+";
/// Laguna: splits before the last line break of a run.
const LINE_ENDS: &str = r"(?:\r?\n)+(?!\r?\n)";

/// The defaults of an entry.
const PLAIN: PreTokenizer = PreTokenizer {
    names: &[],
    cuts: &[],
    ignore_merges: false,
    adds_bos: false,
    is_nfc: false,
    is_sentencepiece: false,
};

#[rustfmt::skip]
const TABLE: &[PreTokenizer] = &[
    PreTokenizer {
        names: &["gpt-2", "phi-2", "jais", "trillion", "granite-docling", "exaone4", "gigachat",
                 "a.x-4.0", "mellum", "modern-bert", "jina-es", "jina-de", "jina-v2-es",
                 "jina-v2-de", "jina-v1-en", "jina-v2-code", "roberta-bpe"],
        cuts: &[GPT2], ..PLAIN
    },
    PreTokenizer { names: &["mpt", "olmo"], cuts: &[GPT2], is_nfc: true, ..PLAIN },
    PreTokenizer {
        names: &["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0",
                 "lfm2", "jina-v5-nano"],
        cuts: &[LLAMA3], ignore_merges: true, adds_bos: true, ..PLAIN
    },
    PreTokenizer { names: &["dbrx", "smaug-bpe"], cuts: &[LLAMA3], ..PLAIN },
    PreTokenizer {
        names: &["glm4", "chatglm-bpe"],
        cuts: &[LLAMA3], ignore_merges: true, ..PLAIN
    },
    PreTokenizer {
        names: &["minicpm5"],
        cuts: &[r"\p{N}{1,3}", MINICPM5], ignore_merges: true, ..PLAIN
    },
    PreTokenizer { names: &["jais-2"], cuts: &[JAIS2], ..PLAIN },
    PreTokenizer {
        names: &["qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez"],
        cuts: &[QWEN2], is_nfc: true, ..PLAIN
    },
    PreTokenizer {
        names: &["stablelm2", "hunyuan", "grok-2", "solar-open"],
        cuts: &[QWEN2], ..PLAIN
    },
    PreTokenizer { names: &["qwen35"], cuts: &[QWEN35], is_nfc: true, ..PLAIN },
    PreTokenizer { names: &["laguna"], cuts: &[LINE_ENDS, QWEN2], ..PLAIN },
    PreTokenizer { names: &["ufakzeka"], cuts: &[UFAKZEKA], ..PLAIN },
    PreTokenizer { names: &["seed-coder"], cuts: &[SEED_CODER], ..PLAIN },
    PreTokenizer {
        names: &["bailingmoe", "bailingmoe2", "llada-moe"],
        cuts: &[BAILING], ..PLAIN
    },
    PreTokenizer { names: &["exaone-moe"], cuts: &[EXAONE_MOE], ..PLAIN },
    PreTokenizer {
        names: &["smollm", "starcoder", "refact", "codeshell", "exaone", "minerva-7b", "mellum2"],
        cuts: &[r"\p{N}", GPT2], ..PLAIN
    },
    PreTokenizer { names: &["command-r"], cuts: &[r"\p{N}", GPT2], is_nfc: true, ..PLAIN },
    PreTokenizer {
        names: &["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"],
        cuts: &[GPT4O], ignore_merges: true, ..PLAIN
    },
    PreTokenizer {
        names: &["tiny_aya", "cohere2moe"],
        cuts: &[r"\d{1,3}(?=(?:\d{3})*\b)", GPT4O], ..PLAIN
    },
    PreTokenizer {
        names: &["youtu"],
        cuts: &[YOUTU_SCRIPTS, YOUTU], ignore_merges: true, ..PLAIN
    },
    PreTokenizer { names: &["kimi-k2"], cuts: &[KIMI], ignore_merges: true, ..PLAIN },
    PreTokenizer {
        names: &["tekken"],
        cuts: &[TEKKEN], ignore_merges: true, adds_bos: true, ..PLAIN
    },
    PreTokenizer {
        names: &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
        cuts: &[r"\p{N}{1,3}", CJK, DEEPSEEK3], ..PLAIN
    },
    PreTokenizer {
        names: &["spark2_5"],
        cuts: &[r"\p{N}{1,3}", CJK, SPARK, r"\p{N}"], ..PLAIN
    },
    PreTokenizer {
        names: &["afmoe"],
        cuts: &[r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))", ASIAN, DEEPSEEK3], ..PLAIN
    },
    PreTokenizer {
        names: &["deepseek-coder"],
        cuts: &[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK_AND_HANGUL, r"\p{N}"], ..PLAIN
    },
    PreTokenizer {
        names: &["deepseek-llm"],
        cuts: &[r"[\r\n]", CASED, DEEPSEEK_MARKS, r"\s+$", CJK_AND_HANGUL, r"\p{N}"], ..PLAIN
    },
    PreTokenizer {
        names: &["falcon"],
        cuts: &[r"[\p{P}$+<=>^~|`]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"], ..PLAIN
    },
    PreTokenizer { names: &["bloom", "gpt3-finnish", "poro-chat"], cuts: &[BLOOM], ..PLAIN },
    PreTokenizer { names: &["viking"], cuts: &[BLOOM, r"\p{N}"], ..PLAIN },
    PreTokenizer {
        names: &["superbpe"],
        cuts: &[r"\p{N}+", r"(?=(\d{3})+(?!\d))"], ..PLAIN
    },
    PreTokenizer {
        names: &["chameleon"],
        cuts: &["<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )",
                r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]", GPT2],
        adds_bos: true, ..PLAIN
    },
    // Merges run over whole strings.
    PreTokenizer { names: &["gemma4"], adds_bos: true, is_sentencepiece: true, ..PLAIN },
    PreTokenizer { names: &["sarvam-moe"], is_sentencepiece: true, ..PLAIN },
    // Old files name none; llama.cpp uses this one for them.
    PreTokenizer {
        names: &["default"],
        cuts: &[r"[\p{P}$+<=>^~|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"], ..PLAIN
    },
];

impl PreTokenizer {
    /// The pre-tokenizer of this name.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] naming a pre-tokenizer that the table lacks.
    pub fn named(name: &str) -> Result<&'static PreTokenizer> {
        TABLE
            .iter()
            .find(|entry| entry.names.contains(&name))
            .ok_or_else(|| {
                let name: String = name.chars().take(64).collect();
                Error::UnsupportedModel(format!("pre-tokenizer {name:?} (tokenizer.ggml.pre)"))
            })
    }

    /// A splitter that splits text as this pre-tokenizer does.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] if the regex library refuses a pattern.
    pub fn splitter(&self) -> Result<Splitter> {
        let mut splitter = Splitter::default();
        for &pattern in self.cuts {
            let behavior = match pattern {
                LINE_ENDS => Behavior::MergedWithNext,
                _ => Behavior::Isolated,
            };
            splitter.cut(pattern, behavior, false)?;
        }
        Ok(splitter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces<'t>(name: &str, text: &'t str) -> Vec<&'t str> {
        let splitter = PreTokenizer::named(name).unwrap().splitter().unwrap();
        let mut pieces = Vec::new();
        let mut keep = |piece| {
            pieces.push(piece);
            Ok(())
        };
        splitter.split(text, &mut keep).unwrap();
        pieces
    }

    #[test]
    fn every_entry_compiles_under_every_name_and_loses_nothing() {
        let text =
            "I'VE seen 12345 things,\r\n\n  naïve Ｔｅｓｔ 東京カナ e\u{301}\u{301} 🦙!\t x  ";
        let mut seen = std::collections::HashSet::new();
        for name in TABLE.iter().flat_map(|entry| entry.names) {
            assert!(seen.insert(name), "{name} occurs twice");
            assert_eq!(pieces(name, text).concat(), text, "{name}");
        }
        assert!(seen.len() > 70, "{}", seen.len());
    }

    #[test]
    fn splits_as_the_named_pre_tokenizer_does() {
        let text = "We'LL see  2024 cats\n";
        let cases: [(&str, &[&str]); 6] = [
            (
                "gpt-2",
                &["We", "'", "LL", " see", " ", " 2024", " cats", "\n"],
            ),
            (
                "llama3",
                &["We", "'LL", " see", " ", " ", "202", "4", " cats", "\n"],
            ),
            (
                "qwen2",
                &[
                    "We", "'LL", " see", " ", " ", "2", "0", "2", "4", " cats", "\n",
                ],
            ),
            (
                "smollm",
                &[
                    "We", "'", "LL", " see", "  ", "2", "0", "2", "4", " cats", "\n",
                ],
            ),
            ("superbpe", &["We'LL see  ", "2", "024", " cats\n"]),
            ("gemma4", &[text]),
        ];
        for (name, expected) in cases {
            assert_eq!(pieces(name, text), expected, "{name}");
        }
        assert_eq!(pieces("laguna", "a\r\n\n b\n"), ["a", "\r\n\n", " b", "\n"]);
        assert_eq!(
            pieces("llama4", "HelloWorld We'LL 2024's\n"),
            ["Hello", "World", " We'LL", " ", "202", "4", "'s", "\n"]
        );
        assert_eq!(
            pieces("kimi-k2", "HelloWorld 中文ABc"),
            ["Hello", "World", " ", "中文", "ABc"]
        );
    }

    #[test]
    fn an_unknown_name_is_in_the_error() {
        let Err(Error::UnsupportedModel(message)) = PreTokenizer::named("martian") else {
            panic!("accepted");
        };
        assert!(message.contains("martian"), "{message}");
    }
}
