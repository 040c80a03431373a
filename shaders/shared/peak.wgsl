// The largest magnitude of 32 values, or NaN if one of them is NaN. The bits of magnitudes are compared, which
// have the same order.
fn peak_of(values: ptr<function, array<vec4<f32>, 8>>) -> f32 {
    var bits = vec4<u32>(0u);
    for (var i = 0u; i < 8u; i++) { // unrolled
        bits = max(bits, bitcast<vec4<u32>>((*values)[i]) & vec4<u32>(0x7fffffffu));
    }
    return bitcast<f32>(max(max(bits.x, bits.y), max(bits.z, bits.w)));
}

// The factor that scales values of magnitude `peak` to `top`; 0 if they are negligible.
fn scale_to(top: f32, peak: f32) -> f32 {
    return select(0.0, top / peak, peak > 1e-30);
}
