//! A `tokenizer.json`, and after a zero byte a text that it encodes and decodes.

use inpage::text::{HuggingFaceFiles, Tokenizer};

pub fn run(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == 0);
    let (file, text) = input.split_at(end.unwrap_or(input.len()));
    let files = HuggingFaceFiles {
        tokenizer: file,
        ..HuggingFaceFiles::default()
    };
    let Ok(tokenizer) = Tokenizer::from_hugging_face(&files) else {
        return;
    };
    let text = String::from_utf8_lossy(text.get(1..).unwrap_or_default());
    let Ok((ids, places)) = tokenizer.encode_placed(&text, true) else {
        return;
    };
    assert_eq!(ids.len(), places.len());
    assert!(ids.iter().all(|id| (*id as usize) < tokenizer.vocab_size()));
    tokenizer.decode(&ids, true);
}
