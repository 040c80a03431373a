//! What `engine.info()` reports.

/** What the engine runs on; more members than these may be there. */
export interface EngineInfo {
  /** The GPU's own description. */
  adapter?: string;
  /** True if the GPU is emulated on the CPU: correct, but slow. */
  software_adapter?: boolean;
  /** The kernel variant in use. */
  variant?: string;
  /** Longest sequence, in tokens. */
  context_tokens?: number;
  /** How keys and values are kept, for how many tokens of all sequences, and the bytes they take. */
  kv_format?: "f32" | "f16" | "q8_0";
  kv_pool_tokens?: number;
  kv_bytes?: number;
  /** The low-rank adapters in use. */
  lora?: { name: string; scale: number }[];
  /** What loading took, part by part, in milliseconds; `kernels` and `weights` ran side by side. */
  load_ms?: Record<string, number>;
  [name: string]: unknown;
}
