//! A constraint: the first byte chooses its kind, the rest is its source. A constraint that compiles follows the first
//! allowed tokens, because llguidance reaches some of its limits only in a mask.

use std::cell::LazyCell;

use inpage::grammar::{Compiler, GrammarSource, Next, Objects};
use inpage::text::Tokenizer;

use crate::fixture::{VOCAB, metadata_of_tests};

/// Tokens that a completion follows.
const STEPS: usize = 8;
/// The ids before are control tokens.
const FIRST_TEXT_ID: u32 = 4;

thread_local! {
    static COMPILER: LazyCell<Compiler> = LazyCell::new(|| {
        let tokenizer = Tokenizer::from_gguf(&metadata_of_tests());
        Compiler::new(&tokenizer.expect("the vocabulary is valid"), VOCAB as usize)
    });
}

fn follow(compiler: &Compiler, source: &GrammarSource) {
    let Ok(grammar) = compiler.compile(source, Objects::Closed) else {
        return;
    };
    let mut matcher = grammar.matcher();
    for step in 0..STEPS {
        let id = match matcher.next() {
            Ok(Next::OneOf(mask)) => {
                let mut allowed = (FIRST_TEXT_ID..VOCAB).filter(|id| mask.allows(*id));
                allowed
                    .nth(step)
                    .or_else(|| (FIRST_TEXT_ID..VOCAB).find(|id| mask.allows(*id)))
            }
            Ok(Next::Free) => Some(FIRST_TEXT_ID + u32::from(b'a')),
            Ok(Next::Finished) | Err(_) => None,
        };
        let Some(id) = id else { return };
        matcher.accept(id).expect("the mask allows the token");
    }
}

pub fn run(input: &[u8]) {
    let Some((kind, source)) = input.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(source).into_owned();
    let source = match kind % 5 {
        0 => GrammarSource::Gbnf(text),
        1 => GrammarSource::Lark(text),
        2 => GrammarSource::Regex(text),
        3 => match serde_json::from_str(&text) {
            Ok(schema) => GrammarSource::JsonSchema(schema),
            Err(_) => return,
        },
        _ => match serde_json::from_str(&text) {
            Ok(grammars) => GrammarSource::LlGuidance(grammars),
            Err(_) => return,
        },
    };
    COMPILER.with(|compiler| follow(compiler, &source));
}
