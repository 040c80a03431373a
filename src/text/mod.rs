//! Between text and token ids: tokenizer, byte-exact detokenizer, stop strings.
