//! 16-bit floats: f16 (IEEE 754 binary16) and bf16, the upper half of an f32.

/// The f32 of an f16.
pub(crate) fn f16_to_f32(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let bits = u32::from(half & 0x7fff) << 13;
    let magnitude = match half & 0x7c00 {
        // Subnormal: the implicit one of 2^-14 is added, then subtracted.
        0 => (f32::from_bits(bits | 113 << 23) - f32::from_bits(113 << 23)).to_bits(),
        0x7c00 if half & 0x3ff == 0 => 0x7f80_0000,
        // A NaN becomes quiet.
        0x7c00 => bits | 0x7fc0_0000,
        _ => bits + (112 << 23),
    };
    f32::from_bits(sign | magnitude)
}

/// The nearest f16, even on ties; infinite from 65520 on.
pub fn f16_from_f32(value: f32) -> u16 {
    let sign = (value.to_bits() >> 16) & 0x8000;
    let size = f32::from_bits(value.to_bits() & 0x7fff_ffff);
    let bits = size.to_bits();
    let magnitude = if size.is_nan() {
        0x7e00 | ((bits >> 13) & 0x3ff)
    } else if size >= 65520.0 {
        0x7c00
    } else if size < 6.103_515_6e-5 {
        // Subnormal in f16: units of 2^-24, to which the sum with 0.5 rounds.
        (size + 0.5).to_bits() - 0.5f32.to_bits()
    } else {
        let odd = (bits >> 13) & 1;
        (bits + 0xfff + odd - (112 << 23)) >> 13
    };
    (magnitude | sign) as u16
}

/// The f32 of a bf16.
pub(crate) fn bf16_to_f32(half: u16) -> f32 {
    f32::from_bits(u32::from(half) << 16)
}

/// The nearest bf16, even on ties.
pub fn bf16_from_f32(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}
