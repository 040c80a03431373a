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
