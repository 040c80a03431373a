//! Models in one and two bits and in ternary digits, against references: all their matrices but the output have the type.

use pollster::block_on;

use crate::{
    cpu_device::assert_near,
    fixture::{Feed, computes, floats, ids, json, model_with, npy, sequence},
    references::{assert_greedy, assert_last_logits},
    shared_models,
};
use inpage::ops::kv_memory::KvFormat;

const TOLERANCE: f32 = 0.05;

/// The last logits in each way to feed them, the best token of every position, and greedy tokens up to the first step at
/// which the best two are within the tolerance. The CPU device by the divergence of the last logits.
fn meets_its_reference(name: &str, ty: &str) {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let reference = json(&folder.join(format!("2026/refs/{name}.json")));
    let of_type = &reference["quants"][ty];
    let path = folder.join(format!("2026/{name}-{ty}.gguf"));
    let prompt = ids(&reference["ids"]);
    let logits = npy(&folder.join(format!("2026/refs/{name}-{ty}.last_logits.npy")));
    let margins = floats(&of_type["greedy_margins"]);
    let certain = margins.iter().position(|margin| *margin < TOLERANCE);
    let greedy = &ids(&of_type["greedy"])[..certain.unwrap_or(margins.len())];
    assert!(greedy.len() > 2, "{name}");
    for (device, compute) in computes() {
        let what = format!("{name} {ty} on the {device}");
        let mut model = model_with(&compute, &path, KvFormat::F32);
        assert_last_logits(&what, &mut model, &prompt, &logits, TOLERANCE);
        let all = block_on(model.feed_all(&mut sequence(&model), &prompt)).unwrap();
        assert_greedy(&what, &all, &ids(&of_type["greedy_next"]), TOLERANCE);
        let mut kv = sequence(&model);
        let chosen = block_on(model.feed_greedy(&mut kv, &prompt, greedy.len())).unwrap();
        assert_eq!(chosen, greedy, "{what}: greedy tokens");
    }
    assert_near(&format!("{name} {ty}"), &path, &prompt, &logits);
}

#[test]
fn a_model_in_one_bit_meets_its_reference() {
    meets_its_reference("bonsai1", "Q1_0");
}

#[test]
fn a_model_in_two_bits_meets_its_reference() {
    meets_its_reference("bonsai2", "Q2_0");
}

#[test]
fn a_ternary_model_meets_its_reference_in_both_types() {
    meets_its_reference("ternary", "TQ1_0");
    meets_its_reference("ternary", "TQ2_0");
}
