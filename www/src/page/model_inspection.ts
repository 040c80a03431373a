//! What `inspectModel` and `inpage inspect --json` tell, as TypeScript sees it. Rust fills it in.

/** What a model is, what it takes of a GPU, whether it runs. */
export interface ModelInspection {
  /** The version of inpage. */
  version: string;
  /** Of the files with tensors, as they are stored. */
  fileBytes: number;
  /** What the files with tensors are, and how many: parts of a split GGUF file, shards of a folder. */
  container: { kind: "gguf" | "safetensors"; files: number };
  /** This build runs the model, as far as the headers tell. */
  runs: boolean;
  /** The error that a load would fail with. */
  refusal: ModelRefusal | null;
  /** By the largest part of a buffer that kernels see on a device; the last one decides. */
  devices: { maxBindingBytes: number; refusal: ModelRefusal | null }[];
  /** `null` if a header cannot be read. */
  model: InspectedModel | null;
  /** `null` if there is none that this build knows. */
  tokenizer: InspectedTokenizer | null;
}

export interface ModelRefusal {
  /** `unsupported_model`, `invalid_model_file` or `out_of_memory`. */
  code: string;
  message: string;
}

export interface InspectedModel {
  name: string | null;
  architecture: string | null;
  /** Elements of all tensors. */
  parameters: number;
  /** Bytes of all tensors, in the types that they are loaded in. */
  loadedBytes: number;
  /**
   * What the tensors are loaded in, that with the most bytes first. A folder's matrices become what
   * `load.quantize` says; all others are what their file says.
   */
  tensorTypes: { type: string; tensors: number; elements: number; bytes: number }[];
  /** `null` if the architecture is unknown. */
  hyperparameters: {
    contextTokens: number;
    layers: number;
    dim: number;
    /** Of one expert, where there are experts. */
    ffnDim: number;
    heads: number;
    kvHeads: number;
    headDim: number;
    vocab: number;
    /** `null` where positions are learned vectors. */
    rope: {
      base: number;
      /** Of layers with frequencies of their own. */
      localBase: number | null;
      /** Elements of each head that are rotated. */
      dims: number;
      unrotatedLayers: number;
      scaling: "none" | "linear" | "yarn" | "longrope" | "llama3";
      factor: number | null;
      originalTokens: number | null;
    } | null;
    /** Layers whose tokens see only the last ones, by how many these are. */
    windows: { tokens: number; layers: number }[];
    experts: { count: number; used: number } | null;
  } | null;
  /** Of the GPU; `null` if the sizes are unknown. */
  memory: {
    /** Longest sequence; never more than the model's own context. */
    contextTokens: number;
    kvFormat: "f32" | "f16" | "q8_0";
    /** Tokens of keys and values that all sequences share. */
    kvPoolTokens: number;
    weightBytes: number;
    kvBytes: number;
    /** Roughly. */
    scratchBytes: number;
    totalBytes: number;
    /** The largest part that a kernel has to see at once. */
    largestBuffer: { name: string; bytes: number };
  } | null;
}

export interface InspectedToken {
  id: number;
  text: string;
}

export interface InspectedTokenizer {
  /** `gpt2` (BPE), `llama` (SentencePiece BPE) or `t5` (SentencePiece unigram). */
  kind: string;
  preTokenizer: string | null;
  tokens: number;
  bos: InspectedToken | null;
  eos: InspectedToken | null;
  addsBos: boolean;
  addsEos: boolean;
  /** All that end a text or a turn, `eos` first. */
  ends: InspectedToken[];
  /** Before the prefix, before the suffix and before what is asked for. */
  fillInMiddle: [InspectedToken, InspectedToken, InspectedToken] | null;
  hasChatTemplate: boolean;
}
