// A tile of 16 pairs by 64 lines of weights in the memory of a workgroup of 64 lanes, one block of 32
// columns at a time. A lane computes the products of 4 pairs with 4 lines.
var<workgroup> x_tile: array<vec4<f32>, 128>; // [32 columns / 4, 16 pairs]
var<workgroup> w_tile: array<vec4<f32>, 512>; // [32 columns / 4, 64 lines]

// The rows of x that a lane fetches from.
fn fetched_inputs(tile: u32, local: u32) -> vec2<u32> {
    return vec2<u32>(tile_input(tile, local / 8u), tile_input(tile, local / 8u + 8u));
}

// Fetches the lane's part of a block of inputs. Eight neighbouring lanes read the inputs of one pair.
fn fetch_inputs(inputs: vec2<u32>, block: u32, local: u32) {
    let column = block * 8u + local % 8u;
    for (var i = 0u; i < 2u; i++) { // unrolled
        var value = vec4<f32>(0.0);
        if (COLS % 32u == 0u || column < COLS / 4u) {
            value = x[inputs[i] * (COLS / 4u) + column];
        }
        x_tile[(local % 8u) * 16u + local / 8u + i * 8u] = value;
    }
}

// Writes the lane's line of weights.
fn put_line(values: ptr<function, array<vec4<f32>, 8>>, local: u32) {
    for (var i = 0u; i < 8u; i++) { // unrolled
        w_tile[i * 64u + local] = (*values)[i];
    }
}

// Adds the dot products of four pairs, starting with first_pair, with the given lines.
fn add_block(first_pair: u32, lines: vec4<u32>, sums: ptr<function, array<vec4<f32>, 4>>) {
    for (var i = 0u; i < 8u; i++) {
        let a = w_tile[i * 64u + lines.x];
        let b = w_tile[i * 64u + lines.y];
        let c = w_tile[i * 64u + lines.z];
        let d = w_tile[i * 64u + lines.w];
        for (var p = 0u; p < 4u; p++) { // unrolled
            let value = x_tile[i * 16u + first_pair + p];
            (*sums)[p] += vec4<f32>(dot(value, a), dot(value, b), dot(value, c), dot(value, d));
        }
    }
}
