//! The tokens that a vocabulary has for fill-in-the-middle prompts (`suffix`, specification 4.2).

/// The tokens before the prefix, before the suffix, and before the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MiddleTokens {
    pub prefix: u32,
    pub suffix: u32,
    pub middle: u32,
}

/// Their strings by model family: Qwen, StarCoder, SantaCoder, DeepSeek, Code Llama (as published and as
/// converted), GLM, Falcon.
const STRINGS: [[&str; 3]; 8] = [
    ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"],
    ["<fim_prefix>", "<fim_suffix>", "<fim_middle>"],
    ["<fim-prefix>", "<fim-suffix>", "<fim-middle>"],
    ["<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"],
    ["<PRE>", "<SUF>", "<MID>"],
    ["▁<PRE>", "▁<SUF>", "▁<MID>"],
    ["<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"],
    ["<|prefix|>", "<|suffix|>", "<|middle|>"],
];

impl MiddleTokens {
    /// Finds the tokens by their strings; `None` unless all three exist.
    pub fn by_text(strings: &[String]) -> Option<MiddleTokens> {
        let mut found = [[None; 3]; STRINGS.len()];
        for (text, id) in strings.iter().zip(0u32..) {
            // Skips the comparison for nearly all tokens. The kind does not help: converters often mark
            // these tokens as normal.
            if !text.trim_start_matches('▁').starts_with('<') {
                continue;
            }
            for (strings, ids) in STRINGS.iter().zip(&mut found) {
                if let Some(index) = strings.iter().position(|known| known == text) {
                    ids[index].get_or_insert(id);
                }
            }
        }
        found.into_iter().find_map(Self::of)
    }

    /// The three tokens, if all are given.
    pub fn of(ids: [Option<u32>; 3]) -> Option<MiddleTokens> {
        let [prefix, suffix, middle] = ids;
        Some(MiddleTokens {
            prefix: prefix?,
            suffix: suffix?,
            middle: middle?,
        })
    }
}
