// Four neighbouring lanes share a block of 32 weights, so that together they read neighbouring words of the weights and
// of the inputs. A lane has four elements of each half of the block.
const LANES_PER_BLOCK = 4u;
// Vectors of four elements of a block that belong to a lane.
const FOURS = 2u;

var<private> quarter: u32; // 0 to 3

fn choose_part(local: u32) {
    quarter = local % 4u;
}

// The place of the lane's vector `i` in a block.
fn four_at(i: u32) -> u32 {
    return i * 4u + quarter;
}
