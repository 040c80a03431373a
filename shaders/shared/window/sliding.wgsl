// The first token that a query at `position` sees: it sees WINDOW tokens, its own included. WINDOW may be the largest u32.
fn first_seen(position: u32) -> u32 {
    return position + 1u - min(position + 1u, WINDOW);
}
