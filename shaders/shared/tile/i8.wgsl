// f32.wgsl on bytes: a quarter of the workgroup memory traffic and, on devices with the instruction, four
// products at once. The sums of a block are integers; they are scaled and added in f32. Two blocks are
// loaded at a time, so that every lane loads a block of a row and, if there are enough tokens, of a token.
// Each workgroup quantizes the inputs of its tokens itself, which saves a launch.
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [tokens, COLS / 4]

const ROW_LANES: u32 = TILE_ROWS / 4u;
const TOKEN_LANES: u32 = TILE_TOKENS / LANE_TOKENS;
const WORKGROUP: u32 = ROW_LANES * TOKEN_LANES;
const_assert WORKGROUP == 2u * TILE_ROWS;
const_assert TILE_TOKENS <= TILE_ROWS;

// [2 blocks, 32 columns / 16, rows or tokens], and a scale per block.
var<workgroup> w_tile: array<vec4<u32>, 4u * TILE_ROWS>;
var<workgroup> w_scales: array<f32, 2u * TILE_ROWS>;
var<workgroup> x_tile: array<vec4<u32>, 4u * TILE_TOKENS>;
var<workgroup> x_scales: array<f32, 2u * TILE_TOKENS>;

// Loads `block` of a row and of a token as the workgroup's block `part`.
fn load_tiles(first_row: u32, first_token: u32, block: u32, part: u32, line: u32) {
    var bytes: Block;
    clear_block(&bytes);
    if (block < BLOCKS) {
        load_row(first_row, line, block, &bytes);
    }
    w_scales[part * TILE_ROWS + line] = bytes.scale;
    for (var i = 0u; i < 2u; i++) { // unrolled
        w_tile[(part * 2u + i) * TILE_ROWS + line] = half_of(&bytes, i);
    }
    if (line < TILE_TOKENS) {
        clear_block(&bytes);
        if (block < BLOCKS) {
            let last_token = arrayLength(&x) / (COLS / 4u) - 1u;
            var values: array<vec4<f32>, 8>;
            load_x(min(first_token + line, last_token), block, &values);
            quantize_block(&values, &bytes);
        }
        x_scales[part * TILE_TOKENS + line] = bytes.scale;
        for (var i = 0u; i < 2u; i++) { // unrolled
            x_tile[(part * 2u + i) * TILE_TOKENS + line] = half_of(&bytes, i);
        }
    }
}

fn clear_block(out: ptr<function, Block>) {
    for (var i = 0u; i < 8u; i++) { // unrolled
        (*out).words[i] = 0u;
    }
    (*out).scale = 0.0;
}

fn half_of(bytes: ptr<function, Block>, i: u32) -> vec4<u32> {
    return vec4<u32>(
        (*bytes).words[i * 4u],
        (*bytes).words[i * 4u + 1u],
        (*bytes).words[i * 4u + 2u],
        (*bytes).words[i * 4u + 3u],
    );
}

fn dot16(a: vec4<u32>, b: vec4<u32>) -> i32 {
    return dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y)
        + dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w);
}

fn multiply_tiles(
    first_row: u32,
    first_token: u32,
    local: u32,
    sums: ptr<function, array<vec4<f32>, LANE_TOKENS>>,
) {
    let my_row = local % ROW_LANES;
    let my_token = local / ROW_LANES;
    for (var block = 0u; block < BLOCKS; block += 2u) {
        let part = local / TILE_ROWS;
        load_tiles(first_row, first_token, block + part, part, local % TILE_ROWS);
        workgroupBarrier();
        for (var part = 0u; part < 2u; part++) {
            var low: array<vec4<u32>, 4>;
            var high: array<vec4<u32>, 4>;
            var scales: array<f32, 4>;
            for (var r = 0u; r < 4u; r++) { // unrolled
                let at = part * TILE_ROWS + r * ROW_LANES + my_row;
                low[r] = w_tile[at + part * TILE_ROWS];
                high[r] = w_tile[at + part * TILE_ROWS + TILE_ROWS];
                scales[r] = w_scales[at];
            }
            let row_scales = vec4<f32>(scales[0], scales[1], scales[2], scales[3]);
            for (var t = 0u; t < LANE_TOKENS; t++) { // unrolled
                let at = part * TILE_TOKENS + t * TOKEN_LANES + my_token;
                let a = x_tile[at + part * TILE_TOKENS];
                let b = x_tile[at + part * TILE_TOKENS + TILE_TOKENS];
                let products = vec4<i32>(
                    dot16(low[0], a) + dot16(high[0], b),
                    dot16(low[1], a) + dot16(high[1], b),
                    dot16(low[2], a) + dot16(high[2], b),
                    dot16(low[3], a) + dot16(high[3], b),
                );
                (*sums)[t] = fma(x_scales[at] * row_scales, vec4<f32>(products), (*sums)[t]);
            }
        }
        workgroupBarrier();
    }
}
