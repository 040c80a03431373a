// A score per query head that joins each softmax without a value.
@group(0) @binding(B_sinks) var<storage, read> sinks: array<f32>; // [HEADS]

fn sink(head: u32) -> f32 {
    return sinks[head];
}

// The weight of a sink relative to itself.
fn sink_weight() -> f32 {
    return 1.0;
}
