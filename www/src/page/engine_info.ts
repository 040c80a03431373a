//! What `engine.info()` reports.

/** What the engine runs on; more members than these may be there. */
export interface EngineInfo {
  /** The GPU's own description. */
  adapter?: string;
  /** True if the GPU is emulated on the CPU: correct, but slow. */
  softwareAdapter?: boolean;
  /** The kernel variant in use. */
  variant?: string;
  /** Longest sequence, in tokens. */
  contextTokens?: number;
  /** How keys and values are kept, for how many tokens of all sequences, and the bytes they take. */
  kvFormat?: "f32" | "f16" | "q8_0";
  kvPoolTokens?: number;
  kvBytes?: number;
  /** The low-rank adapters in use. */
  lora?: { name: string; scale: number }[];
  /** What loading took, part by part, in milliseconds; `kernels` and `weights` ran side by side. */
  loadMs?: Record<string, number>;
  [name: string]: unknown;
}
