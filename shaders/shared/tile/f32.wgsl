// A tile of TILE_TOKENS by TILE_ROWS sums per workgroup, LANE_TOKENS by 4 of them in the registers of each
// lane. One block of 32 columns at a time goes through workgroup memory, dequantized by `load_row`, which
// the kernel defines. Columns are added in the same order for every tile size.
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [tokens, COLS / 4]

// Lanes along each side of the tile. A lane's rows and tokens are this far apart, so that neighbouring
// lanes read neighbouring words and avoid bank conflicts.
const ROW_LANES: u32 = TILE_ROWS / 4u;
const TOKEN_LANES: u32 = TILE_TOKENS / LANE_TOKENS;
const_assert TOKEN_LANES % 8u == 0u;
const WORKGROUP: u32 = ROW_LANES * TOKEN_LANES;
// The first lanes load the block of one row each. The others share the blocks of the tokens.
const X_LANES: u32 = WORKGROUP - TILE_ROWS;

var<workgroup> w_tile: array<vec4<f32>, 8u * TILE_ROWS>; // [32 columns / 4, rows]
// [32 columns / 4, tokens], with token t of column c at t ^ c: eight lanes that load a token's block
// together write to different banks.
var<workgroup> x_tile: array<vec4<f32>, 8u * TILE_TOKENS>;

fn load_tiles(first_row: u32, first_token: u32, block: u32, local: u32) {
    if (local < TILE_ROWS) {
        var values: Block;
        load_row(first_row, local, block, &values);
        for (var i = 0u; i < 8u; i++) { // unrolled
            w_tile[i * TILE_ROWS + local] = values[i];
        }
    } else {
        let last_token = arrayLength(&x) / (COLS / 4u) - 1u;
        for (var at = local - TILE_ROWS; at < 8u * TILE_TOKENS; at += X_LANES) {
            let i = at % 8u;
            let line = at / 8u;
            let column = block * 8u + i;
            var value = vec4<f32>(0.0);
            if (COLS % 32u == 0u || column < COLS / 4u) {
                value = x[min(first_token + line, last_token) * (COLS / 4u) + column];
            }
            x_tile[i * TILE_TOKENS + (line ^ i)] = value;
        }
    }
}

// The sums of a lane: per token a vector over four rows, which are ROW_LANES apart. Each vector of four columns
// that is read from one side is used with all rows or tokens of the other side.
fn multiply_tiles(
    first_row: u32,
    first_token: u32,
    local: u32,
    sums: ptr<function, array<vec4<f32>, LANE_TOKENS>>,
) {
    let my_row = local % ROW_LANES;
    let my_token = local / ROW_LANES;
    for (var block = 0u; block < BLOCKS; block++) {
        load_tiles(first_row, first_token, block, local);
        workgroupBarrier();
        for (var i = 0u; i < 8u; i++) {
            let at = i * TILE_ROWS + my_row;
            let a = w_tile[at];
            let b = w_tile[at + ROW_LANES];
            let c = w_tile[at + 2u * ROW_LANES];
            let d = w_tile[at + 3u * ROW_LANES];
            for (var t = 0u; t < LANE_TOKENS; t++) { // unrolled
                let value = x_tile[i * TILE_TOKENS + t * TOKEN_LANES + (my_token ^ i)];
                var sum = (*sums)[t];
                sum = fma(vec4<f32>(value.x), vec4<f32>(a.x, b.x, c.x, d.x), sum);
                sum = fma(vec4<f32>(value.y), vec4<f32>(a.y, b.y, c.y, d.y), sum);
                sum = fma(vec4<f32>(value.z), vec4<f32>(a.z, b.z, c.z, d.z), sum);
                sum = fma(vec4<f32>(value.w), vec4<f32>(a.w, b.w, c.w, d.w), sum);
                (*sums)[t] = sum;
            }
        }
        workgroupBarrier();
    }
}
