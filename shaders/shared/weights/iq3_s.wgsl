// The levels of IQ3_S: the odd numbers from -15 to 15.
fn weights_level(odd: vec4<f32>) -> vec4<f32> {
    return odd;
}
