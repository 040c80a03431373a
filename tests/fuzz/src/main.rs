//! Runs one fuzz target under libFuzzer. The environment variable `INPAGE_FUZZ_TARGET` names it, because libFuzzer reads the
//! arguments. `scripts/fuzz.mjs` builds and starts this program. What is fuzzed is in `targets`.

#![no_main]

mod bounds;
#[allow(dead_code)]
#[path = "../../endpoint/fixture.rs"]
mod fixture;
mod padded;
mod targets;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<targets::Target> = OnceLock::new();

fuzz_target!(|input: &[u8]| {
    let target = TARGET.get_or_init(targets::named);
    bounds::run(target.bounds, input.len(), || (target.run)(input));
});
