// The first token that a query at `position` sees: that of its chunk of WINDOW tokens.
fn first_seen(position: u32) -> u32 {
    return position - position % WINDOW;
}
