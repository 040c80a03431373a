// Shares of experts by the sigmoids of their logits, which are selected by the logits.
fn routing_key(bits: u32, expert: u32) -> u32 {
    return order_of(bits);
}

fn routing_weight(bits: u32, largest: u32) -> f32 {
    return 1.0 / (1.0 + exp(-value_of(order_of(bits))));
}

// The key of a group: that of the sum of its two largest sigmoids.
fn routing_group_key(largest: u32, second: u32) -> u32 {
    if (second == 0u) {
        return 0u;
    }
    let a = routing_weight(bitcast<u32>(value_of(largest)), 0u);
    let b = routing_weight(bitcast<u32>(value_of(second)), 0u);
    return order_of(bitcast<u32>(a + b));
}
