// The order of tokens: logits descending, ids ascending. Logits are compared as integers in the same
// order, because compilers may assume that NaN and infinities do not occur.
const NEGATIVE_INFINITY: u32 = 0xff800000u;
// Keys of -inf, and of values that a valid row does not contain.
const KEY_LEAST: u32 = 0x007fffffu;
const KEY_INVALID: u32 = 0xff800000u;

// A key that increases with the logit.
fn key_of(bits: u32) -> u32 {
    let key = bits ^ select(0x80000000u, 0xffffffffu, (bits & 0x80000000u) != 0u);
    // Both zeros are equal.
    let ordered = select(key, 0x80000000u, bits == 0x80000000u);
    return select(ordered, KEY_INVALID, (bits & 0x7fffffffu) >= 0x7f800000u && bits != NEGATIVE_INFINITY);
}

fn bits_of(key: u32) -> u32 {
    return select(~key, key & 0x7fffffffu, (key & 0x80000000u) != 0u);
}

fn is_finite_key(key: u32) -> bool {
    return key > KEY_LEAST && key < KEY_INVALID;
}

// Whether (key, id) `a` comes before `b`.
fn precedes(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.x > b.x || (a.x == b.x && a.y < b.y);
}
