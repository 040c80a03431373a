// Copies a page of the KV cache to another. One lane per vector of the page.
@group(0) @binding(B_pages) var<storage, read> pages: array<u32>; // from, to
@group(0) @binding(B_kv) var<storage, read_write> kv: array<vec4<u32>>; // [page, PAGE_VECTORS]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    if (global.x < PAGE_VECTORS) {
        kv[pages[1] * PAGE_VECTORS + global.x] = kv[pages[0] * PAGE_VECTORS + global.x];
    }
}
