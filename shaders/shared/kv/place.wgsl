// Places in the KV cache [page, k|v, KV head, page token, VECTORS], found with the block table of the step.

// Index of the first vector of head `kv_head` of the K (`value` is 0) or the V (1) of the token at `position`.
fn kv_at(table: u32, position: u32, value: u32, kv_head: u32) -> u32 {
    let page = step[table + position / PAGE_TOKENS];
    let row = ((page * 2u + value) * KV_HEADS + kv_head) * PAGE_TOKENS + position % PAGE_TOKENS;
    return row * VECTORS;
}
