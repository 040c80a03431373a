//! Sources that mean harm: refused or compiled, in bounded time and stack, never a panic.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// The stack of a wasm module is 1 MiB, and native frames are no smaller.
const STACK_BYTES: usize = 1 << 19;

/// Compiles on a small stack; what compiles also gives a few masks.
fn survives(source: GrammarSource) -> Duration {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let run = move || {
        let model = Model::made();
        let started = Instant::now();
        match model.compiler.compile(&source) {
            Err(error) => assert!(!error.message.starts_with("panic"), "{error:?}"),
            Ok(grammar) => {
                // Within llguidance's limits, or refused by them.
                let _ = model.walk(&grammar, &mut Random(1), 20);
            }
        }
        started.elapsed()
    };
    thread.spawn(run).unwrap().join().unwrap()
}

fn nested(depth: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..depth).fold(json!({ "type": "null" }), |inner, _| wrap(inner))
}
