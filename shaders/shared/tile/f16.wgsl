// f32.wgsl with products in f16 and half the workgroup memory traffic. The inputs of a block are scaled to
// at most 16, so that 32 products with weights below 128 cannot overflow. The sums of a block are f16; they
// are scaled back and added in f32.
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [tokens, COLS / 4]

const ROW_LANES: u32 = TILE_ROWS / 4u;
const TOKEN_LANES: u32 = TILE_TOKENS / LANE_TOKENS;
const WORKGROUP: u32 = ROW_LANES * TOKEN_LANES;
const_assert TILE_TOKENS <= WORKGROUP - TILE_ROWS;

var<workgroup> w_tile: array<vec4<f16>, 8u * TILE_ROWS>; // [32 columns / 4, rows]
var<workgroup> x_tile: array<vec4<f16>, 8u * TILE_TOKENS>; // [32 columns / 4, tokens]
var<workgroup> x_scales: array<f32, TILE_TOKENS>;

// Each of the first TILE_ROWS lanes loads the block of a row. Each of the next ones loads the whole block of a
// token, because the block's scale depends on all of its values.
fn load_tiles(first_row: u32, first_token: u32, block: u32, local: u32) {
    if (local < TILE_ROWS) {
        var values: Block;
        load_row(first_row, local, block, &values);
        for (var i = 0u; i < 8u; i++) { // unrolled
            w_tile[i * TILE_ROWS + local] = vec4<f16>(values[i]);
        }
    } else if (local - TILE_ROWS < TILE_TOKENS) {
        let line = local - TILE_ROWS;
        let last_token = arrayLength(&x) / (COLS / 4u) - 1u;
        var values: Block;
        load_x(min(first_token + line, last_token), block, &values);
        let peak = peak_of(&values);
        let scale = scale_to(16.0, peak);
        for (var i = 0u; i < 8u; i++) { // unrolled
            x_tile[i * TILE_TOKENS + line] = vec4<f16>(values[i] * scale);
        }
        x_scales[line] = peak / 16.0;
    }
}

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
        var parts: array<vec4<f16>, LANE_TOKENS>;
        for (var t = 0u; t < LANE_TOKENS; t++) { // unrolled
            parts[t] = vec4<f16>(0.0h);
        }
        for (var i = 0u; i < 8u; i++) {
            let at = i * TILE_ROWS + my_row;
            let a = w_tile[at];
            let b = w_tile[at + ROW_LANES];
            let c = w_tile[at + 2u * ROW_LANES];
            let d = w_tile[at + 3u * ROW_LANES];
            for (var t = 0u; t < LANE_TOKENS; t++) { // unrolled
                let value = x_tile[i * TILE_TOKENS + t * TOKEN_LANES + my_token];
                var part = parts[t];
                part = fma(vec4<f16>(value.x), vec4<f16>(a.x, b.x, c.x, d.x), part);
                part = fma(vec4<f16>(value.y), vec4<f16>(a.y, b.y, c.y, d.y), part);
                part = fma(vec4<f16>(value.z), vec4<f16>(a.z, b.z, c.z, d.z), part);
                part = fma(vec4<f16>(value.w), vec4<f16>(a.w, b.w, c.w, d.w), part);
                parts[t] = part;
            }
        }
        for (var t = 0u; t < LANE_TOKENS; t++) { // unrolled
            let scale = vec4<f32>(x_scales[t * TOKEN_LANES + my_token]);
            (*sums)[t] = fma(scale, vec4<f32>(parts[t]), (*sums)[t]);
        }
        workgroupBarrier();
    }
}
