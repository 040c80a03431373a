//! A measurement, not a test: `cargo test --release -p inpage-cpu speed -- --ignored --nocapture`. Prints JSON: for each
//! type, billions of multiply-adds a second on one thread for some numbers of tokens; quantizing is included.

use std::time::{Duration, Instant};

use super::matrices::{Packed, Random};
use crate::{
    activations::Activations,
    product::{instruction_set, multiply},
    tensor_types::TensorType,
};

/// The least time of several runs.
fn least(mut run: impl FnMut()) -> Duration {
    let mut least = Duration::MAX;
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(300) {
        let start = Instant::now();
        run();
        least = least.min(start.elapsed());
    }
    least
}

#[test]
#[ignore = "a measurement"]
fn speed() {
    let (rows, cols) = (8192, 2048);
    let mut random = Random(9);
    let from = vec![1u8; 64 << 20];
    let mut to = vec![0u8; 64 << 20];
    let copy = least(|| to.copy_from_slice(&from));
    println!(
        "{{\"instruction_set\":\"{}\",\"copied_gb_per_s\":{:.1},\"rows\":{rows},\"cols\":{cols},\"gmac_per_s\":{{",
        instruction_set(),
        to.len() as f64 / copy.as_nanos() as f64
    );
    let only = std::env::var("TYPE").ok();
    let types = TensorType::ALL
        .iter()
        .filter(|ty| only.as_ref().is_none_or(|only| only == ty.lowercase_name()));
    for (i, &ty) in types.enumerate() {
        // One panel of random rows, again and again.
        let panel = Packed::random(ty, 8, cols, &mut random).panels;
        let packed = Packed {
            ty,
            rows,
            cols,
            panels: panel.repeat(rows / 8),
        };
        let mut x = Activations::default();
        let rates = [1, 2, 4, 16, 64].map(|tokens| {
            let inputs = random.floats(tokens * cols);
            let mut out = vec![0.0; tokens * rows];
            let time = least(|| {
                x.set(&inputs, cols, ty);
                multiply(packed.matrix(), 0..rows, &x, 1, &mut out);
            });
            let rate = (tokens * rows * cols) as f64 / time.as_nanos() as f64;
            format!("\"{tokens}\":{rate:.1}")
        });
        let comma = if i == 0 { "" } else { "," };
        println!("{comma}\"{}\":{{{}}}", ty.lowercase_name(), rates.join(","));
    }
    println!("}}}}");
}
