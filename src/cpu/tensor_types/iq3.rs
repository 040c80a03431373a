//! The parts that IQ3_XXS and IQ3_S share: eight levels with a sign, and a scale for 32 elements. Quants number the values in ascending
//! order.

pub(super) const BITS: usize = 4;
pub(super) const GROUPS: usize = 1;

/// The quants of eight elements, whose levels are two points of a grid.
pub(super) fn quants(levels: [[u8; 4]; 2], signs: u8) -> [u8; 8] {
    let levels = levels.as_flattened();
    std::array::from_fn(|i| match signs >> i & 1 {
        0 => 8 + levels[i],
        _ => 7 - levels[i],
    })
}
