//! How a model is loaded, as TypeScript sees it. Rust validates the options and holds their defaults.

/** All optional. */
export interface LoadOptions {
  /** Longest sequence, in tokens; the model's own context, at most 4096, if left out. */
  contextTokens?: number;
  /**
   * How keys and values are kept on the GPU: `f32` exactly, `f16` (if left out) in half the memory,
   * `q8_0` in little more than a quarter, for models whose heads have a multiple of 32 elements.
   */
  kvFormat?: "f32" | "f16" | "q8_0";
  /**
   * What the matrices of a Hugging Face folder become while they are loaded; GGUF files stay as they
   * are. `q8_0` if left out: about half of 16-bit floats, and no answer shows it. `q4_0` and `q4_k` take
   * about a quarter and cost some quality, `none` keeps what is stored. Rows that do not fit a type's
   * blocks become `q8_0` or `f16`; norms, biases and the routers of experts stay exact.
   */
  quantize?:
    | "none"
    | "f32"
    | "f16"
    | "bf16"
    | "q8_0"
    | "q4_0"
    | "q4_1"
    | "q5_0"
    | "q5_1"
    | "q4_k"
    | "q5_k"
    | "q6_k";
  /**
   * Tokens of keys and values that all sequences share, kept prompts included; 4096 if left out, and
   * never less than one sequence may need.
   */
  kvPoolTokens?: number;
  /**
   * What products may be computed in: `f32` throughout, or, with `auto` (if left out), f16 or bytes where that is
   * measured to be clearly quicker on the GPU at hand. `engine.info().variant` tells what was chosen.
   */
  precision?: "auto" | "f32";
}
