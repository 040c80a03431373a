//! The table of pre-tokenizers: how text is cut before byte-level BPE, by `tokenizer.ggml.pre`.
//! A new one is a new entry here. Knows nothing of vocabularies.

use tokenizers::utils::SysRegex;

use crate::{Error, Result};

/// One entry: the names that select it and what goes with them.
///
/// Names, `ignore_merges` and `adds_bos` follow `llama_vocab::impl::load` of llama.cpp; the
/// patterns are those of the models' own `tokenizer.json`.
struct Entry {
    names: &'static [&'static str],
    /// Applied one after the other, each to every piece the ones before left. Matches and what
    /// lies between them are pieces.
    splits: &'static [&'static str],
    /// A piece that is itself a token is taken whole, whatever the merges say.
    ignore_merges: bool,
    /// Whether a start-of-text token is added when the file does not say.
    adds_bos: bool,
}

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK3: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;

#[rustfmt::skip]
const TABLE: &[Entry] = &[
    Entry {
        names: &["gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "exaone4",
                 "gigachat", "a.x-4.0", "mellum", "modern-bert", "jina-es", "jina-de",
                 "jina-v2-es", "jina-v2-de"],
        splits: &[GPT2], ignore_merges: false, adds_bos: false,
    },
    Entry {
        names: &["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0",
                 "lfm2", "jina-v5-nano"],
        splits: &[LLAMA3], ignore_merges: true, adds_bos: true,
    },
    Entry {
        names: &["dbrx", "smaug-bpe", "glm4", "chatglm-bpe"],
        splits: &[LLAMA3], ignore_merges: false, adds_bos: false,
    },
    Entry {
        names: &["qwen2", "stablelm2", "deepseek-r1-qwen", "megrez", "hunyuan", "kormo", "f2llmv2",
                 "grok-2", "solar-open"],
        splits: &[QWEN2], ignore_merges: false, adds_bos: false,
    },
    Entry {
        names: &["qwen35"],
        splits: &[QWEN35], ignore_merges: false, adds_bos: false,
    },
    Entry {
        names: &["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone",
                 "minerva-7b", "mellum2"],
        splits: &[r"\p{N}", GPT2], ignore_merges: false, adds_bos: false,
    },
    Entry {
        names: &["gpt-4o", "llama4", "kanana2"],
        splits: &[GPT4O], ignore_merges: false, adds_bos: false,
    },
    Entry {
        names: &["tekken"],
        splits: &[TEKKEN], ignore_merges: true, adds_bos: true,
    },
    Entry {
        names: &["deepseek-v3", "hunyuan-dense", "joyai-llm"],
        splits: &[r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK3],
        ignore_merges: false, adds_bos: false,
    },
    Entry {
        names: &["deepseek-coder"],
        splits: &[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}"],
        ignore_merges: false, adds_bos: false,
    },
    Entry {
        names: &["falcon"],
        splits: &[r"[\p{P}$+<=>^~|`]+", GPT2, r"[0-9][0-9][0-9]"],
        ignore_merges: false, adds_bos: false,
    },
    // Old files do not name theirs; llama.cpp reads them with this one.
    Entry {
        names: &["default"],
        splits: &[r"[\p{P}$+<=>^~|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"],
        ignore_merges: false, adds_bos: false,
    },
];

/// Cuts text into the pieces that byte-level BPE merges within.
pub struct PreTokenizer {
    splits: Vec<SysRegex>,
    /// See the table's entry.
    pub ignore_merges: bool,
    /// See the table's entry.
    pub adds_bos: bool,
}

impl PreTokenizer {
    /// The pre-tokenizer of this name.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] naming a pre-tokenizer that the table lacks.
    pub fn named(name: &str) -> Result<PreTokenizer> {
        let entry = TABLE
            .iter()
            .find(|entry| entry.names.contains(&name))
            .ok_or_else(|| {
                let name: String = name.chars().take(64).collect();
                Error::UnsupportedModel(format!("pre-tokenizer {name:?} (tokenizer.ggml.pre)"))
            })?;
        let splits = entry
            .splits
            .iter()
            .map(|pattern| SysRegex::new(pattern))
            .collect::<Result<_, _>>()
            .map_err(|error| Error::Internal(format!("pre-tokenizer {name}: {error}")))?;
        Ok(PreTokenizer {
            splits,
            ignore_merges: entry.ignore_merges,
            adds_bos: entry.adds_bos,
        })
    }

    /// Calls `piece` with each piece in order; together they are `text`.
    pub fn split<'t>(
        &self,
        text: &'t str,
        piece: &mut dyn FnMut(&'t str) -> Result<()>,
    ) -> Result<()> {
        split_with(&self.splits, text, piece)
    }
}

fn split_with<'t>(
    splits: &[SysRegex],
    text: &'t str,
    piece: &mut dyn FnMut(&'t str) -> Result<()>,
) -> Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let Some((first, rest)) = splits.split_first() else {
        return piece(text);
    };
    let mut done_bytes = 0;
    for (start, end) in first.find_iter(text) {
        split_with(rest, &text[done_bytes..start], piece)?;
        split_with(rest, &text[start..end], piece)?;
        done_bytes = end;
    }
    split_with(rest, &text[done_bytes..], piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces<'t>(name: &str, text: &'t str) -> Vec<&'t str> {
        let mut pieces = Vec::new();
        PreTokenizer::named(name)
            .unwrap()
            .split(text, &mut |piece| {
                pieces.push(piece);
                Ok(())
            })
            .unwrap();
        pieces
    }

    #[test]
    fn every_entry_compiles_under_every_name_and_loses_nothing() {
        let text =
            "I'VE seen 12345 things,\r\n\n  naïve Ｔｅｓｔ 東京カナ e\u{301}\u{301} 🦙!\t x  ";
        let mut seen = std::collections::HashSet::new();
        for name in TABLE.iter().flat_map(|entry| entry.names) {
            assert!(seen.insert(name), "{name} stands twice");
            assert_eq!(pieces(name, text).concat(), text, "{name}");
        }
    }

    #[test]
    fn cuts_as_the_named_pre_tokenizer_does() {
        let text = "We'LL see  2024 cats\n";
        assert_eq!(
            pieces("gpt-2", text),
            ["We", "'", "LL", " see", " ", " 2024", " cats", "\n"]
        );
        assert_eq!(
            pieces("llama3", text),
            ["We", "'LL", " see", " ", " ", "202", "4", " cats", "\n"]
        );
        assert_eq!(
            pieces("qwen2", text),
            [
                "We", "'LL", " see", " ", " ", "2", "0", "2", "4", " cats", "\n"
            ]
        );
        assert_eq!(
            pieces("smollm", text),
            [
                "We", "'", "LL", " see", "  ", "2", "0", "2", "4", " cats", "\n"
            ]
        );
    }

    #[test]
    fn an_unknown_name_is_named() {
        let Err(Error::UnsupportedModel(message)) = PreTokenizer::named("martian") else {
            panic!("accepted");
        };
        assert!(message.contains("martian"), "{message}");
    }
}
