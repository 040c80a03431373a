// Twice the value of 4-bit floats, numbered from the smallest value to the largest: -6, -4, -3, -2, -1.5, -1, -0.5, -0, 0,
// 0.5, 1, 1.5, 2, 3, 4, 6. A table with a variable index would be kept in memory. This polynomial differs from the doubled
// values, which are integers, by less than 0.402, so rounding gives them exactly.
fn weights_doubled(number: vec4<f32>) -> vec4<f32> {
    let t = number - 7.5;
    return round(t * (0.0181405896 * t * t + 0.526077098));
}
