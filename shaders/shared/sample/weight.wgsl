// Weights exp((z - z_max) / T) as in src/sample, in fixed point, so that sums do not depend on the order
// of their terms. Also bins tokens by their distance from the best.
struct Scale {
    peak: f32,
    // Smallest logit in reach: lighter tokens are never drawn.
    lowest: f32,
    temperature: f32,
    inverse: f32, // 1 / temperature
}

const MIN_ARGUMENT: f32 = -87.0;
// Distances below this share bin 0. Each following bin is 1/32 of an octave.
const FIRST_BIN_END: f32 = 0.015625;
const BIN_SHIFT: u32 = 18u;
// Distances of at least this share the last bin. It holds most tokens, but little weight.
const TAIL: f32 = 12.0;

fn scale_of(slot: u32, peak: f32) -> Scale {
    let temperature = slot_float(slot, SLOT_TEMPERATURE);
    return Scale(peak, peak + MIN_ARGUMENT * temperature, temperature, slot_float(slot, SLOT_INVERSE));
}

fn in_reach(bits: u32, scale: Scale) -> bool {
    return bits != NEGATIVE_INFINITY && bitcast<f32>(bits) >= scale.lowest;
}

// e^x for x <= 0; the arithmetic of src/sample/exp.rs.
fn exp_as_specified(x: f32) -> f32 {
    // `round` instead of adding and subtracting 1.5 * 2^23, which compilers may remove.
    let n = round(max(x, MIN_ARGUMENT) * 1.44269504);
    let r = x - n * 0.693359375 - n * -2.12194440e-4;
    var p = 1.9875691e-4;
    p = p * r + 1.3981999e-3;
    p = p * r + 8.3334519e-3;
    p = p * r + 4.1665796e-2;
    p = p * r + 0.16666665;
    p = p * r + 0.5;
    let e_r = p * r * r + r + 1.0;
    let power = bitcast<f32>(u32(i32(n) + 127) << 23u);
    return select(0.0, e_r * power, x >= MIN_ARGUMENT);
}

// The weight of a logit in reach.
fn weight_of(z: f32, scale: Scale) -> f32 {
    return min(exp_as_specified((z - scale.peak) / scale.temperature), 1.0);
}

// A weight in units of 2^-44: low word, high word.
fn fixed(weight: f32) -> vec2<u32> {
    let bits = bitcast<u32>(weight);
    let exponent = bits >> 23u;
    if (exponent == 0u) {
        return vec2<u32>(0u);
    }
    let mantissa = (bits & 0x7fffffu) | 0x800000u;
    // 127 is the exponent of 1, and 23 the position of its leading bit.
    if (exponent >= 106u) {
        let left = exponent - 106u;
        return vec2<u32>(mantissa << left, select(0u, mantissa >> (32u - max(left, 1u)), left > 0u));
    }
    let right = 106u - exponent;
    return vec2<u32>(select(0u, mantissa >> min(right, 31u), right < 24u), 0u);
}

// The distance of a logit in reach from the best, in units of the temperature. Every operation is rounded
// separately and none can be contracted, so all kernels get the same result.
fn distance_of(z: f32, scale: Scale) -> f32 {
    return (scale.peak - z) * scale.inverse;
}

// The bin of a distance; it increases with the distance.
fn bin_of(distance: f32) -> u32 {
    let bin = ((bitcast<u32>(distance) - bitcast<u32>(FIRST_BIN_END)) >> BIN_SHIFT) + 1u;
    return select(select(bin, 0u, distance < FIRST_BIN_END), BINS - 1u, distance >= TAIL);
}

// The position within the bin, below 256; it increases with the distance.
fn part_of_bin(distance: f32) -> u32 {
    if (distance < FIRST_BIN_END) {
        return min(u32(distance / FIRST_BIN_END * 256.0), 255u);
    }
    if (distance >= TAIL) {
        return min((bitcast<u32>(distance) - bitcast<u32>(TAIL)) >> (BIN_SHIFT - 1u), 255u);
    }
    return (bitcast<u32>(distance) >> (BIN_SHIFT - 8u)) & 255u;
}
