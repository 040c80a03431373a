// The experts of each token, for kernels that need them for biases only.
@group(0) @binding(B_experts) var<storage, read> experts: array<u32>; // [tokens, USED]
