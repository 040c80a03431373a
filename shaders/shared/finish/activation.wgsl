// Applies the activation function to a product.
fn finish(value: f32) -> f32 {
    return activate(value);
}
