// The first token that a query at `position` sees: one of the WINDOW tokens up to its own. WINDOW may be the largest number.
fn first_seen(position: u32) -> u32 {
    return position + 1u - min(position + 1u, WINDOW);
}
