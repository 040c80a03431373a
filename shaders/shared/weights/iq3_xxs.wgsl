// The levels of IQ3_XXS: the odd numbers from -13 to 13, and -15.5 and 15.5.
fn weights_level(odd: vec4<f32>) -> vec4<f32> {
    return odd + 0.5 * trunc(odd * 0.07);
}
