// A lane multiplies whole blocks of 32 weights.
const LANES_PER_BLOCK = 1u;
// Vectors of four elements of a block that belong to a lane.
const FOURS = 8u;

fn choose_part(local: u32) {}

// The place of the lane's vector `i` in a block.
fn four_at(i: u32) -> u32 {
    return i;
}
