// Shares of experts by the sigmoids of their logits. A bias counts for the selection only.
@group(0) @binding(B_bias) var<storage, read> bias: array<f32>; // [EXPERTS]

fn routing_key(bits: u32, expert: u32) -> u32 {
    if (order_of(bits) == 0u) {
        return 0u;
    }
    return order_of(bitcast<u32>(routing_weight(bits, 0u) + bias[expert]));
}

fn routing_weight(bits: u32, largest: u32) -> f32 {
    return 1.0 / (1.0 + exp(-value_of(order_of(bits))));
}

// The key of a group: that of the sum of its two largest values of a sigmoid and its bias (DeepSeek-V3).
fn routing_group_key(largest: u32, second: u32) -> u32 {
    if (second == 0u) {
        return 0u;
    }
    return order_of(bitcast<u32>(value_of(largest) + value_of(second)));
}
