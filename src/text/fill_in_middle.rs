//! Which tokens of a vocabulary frame the prompt of a fill-in-the-middle task (specification 4.2, suffix).
//! Knows nothing of the prompt itself.

/// The tokens before the prefix, before the suffix, and before what is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MiddleTokens {
    pub prefix: u32,
    pub suffix: u32,
    pub middle: u32,
}

/// Their texts by family: Qwen, StarCoder, SantaCoder, DeepSeek, Code Llama (as published and
/// as converted), GLM, Falcon.
const TEXTS: [[&str; 3]; 8] = [
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
    /// What the tokens' texts tell; `None` unless there are all three.
    pub fn by_text(texts: &[String]) -> Option<MiddleTokens> {
        let mut found = [[None; 3]; TEXTS.len()];
        for (text, id) in texts.iter().zip(0u32..) {
            // Spares nearly all tokens the comparison. Their kind is no guide: converters often call
            // them normal.
            if !text.trim_start_matches('▁').starts_with('<') {
                continue;
            }
            for (texts, ids) in TEXTS.iter().zip(&mut found) {
                if let Some(index) = texts.iter().position(|known| known == text) {
                    ids[index].get_or_insert(id);
                }
            }
        }
        found.into_iter().find_map(Self::of)
    }

    /// The three, if there are all.
    pub fn of(ids: [Option<u32>; 3]) -> Option<MiddleTokens> {
        let [prefix, suffix, middle] = ids;
        Some(MiddleTokens {
            prefix: prefix?,
            suffix: suffix?,
            middle: middle?,
        })
    }
}
