// Shares of experts by a softmax of their logits: the key that selects, and the weight before the division. The key of a
// group is the largest one in it (DeepSeek-V2).
fn routing_key(bits: u32, expert: u32) -> u32 {
    return order_of(bits);
}

fn routing_weight(bits: u32, largest: u32) -> f32 {
    return exp(value_of(order_of(bits)) - value_of(largest));
}

fn routing_group_key(largest: u32, second: u32) -> u32 {
    return largest;
}
