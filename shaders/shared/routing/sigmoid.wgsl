// Shares of experts by the sigmoids of their logits, which are selected by the logits.
fn routing_key(bits: u32, expert: u32) -> u32 {
    return order_of(bits);
}

fn routing_weight(bits: u32, largest: u32) -> f32 {
    return 1.0 / (1.0 + exp(-value_of(order_of(bits))));
}
