//! The types of the catalog's entries: the files of a model, and the facts about it.

/** The tasks that a model can be used for. `reasoning` models write their thoughts before the answer; those that rerank do nothing else. */
export type CatalogTask = "chat" | "reasoning" | "code" | "vision" | "embedding" | "rerank";

/** The files of a model, as `createEngine` takes them. */
export interface CatalogFiles {
  /** A GGUF file or a folder on a model hub: `hf:OWNER/NAME/FILE.gguf` or `hf:OWNER/NAME`, with `@REVISION` where one is known. */
  model: string;
  /** The vision tower of models that see. */
  projector?: string;
  /** The same model file on other servers. */
  mirrors?: readonly string[];
}

/** Fields of requests, with the values that the makers recommend. */
export interface CatalogSampling {
  temperature?: number;
  top_p?: number;
  top_k?: number;
  min_p?: number;
  presence_penalty?: number;
  repetition_penalty?: number;
}

/** The facts that people know about a model. */
export interface CatalogFacts {
  /** `qwen3-0.6b`: what `createEngine` and the command take. */
  name: string;
  title: string;
  /** The models of a maker that belong together. */
  family: string;
  tasks: readonly CatalogTask[];
  files: CatalogFiles;
  /** Type of most matrices in the file, as llama.cpp's quantizer names it, or `F32`. */
  type: string;
  /** An SPDX identifier, or the name of a licence that has none. */
  licence: string;
  /** Languages that the makers name, as BCP 47 tags; `mul` where they say "many" without a list that fits here. */
  languages: readonly string[];
  /** The month of its publication: `2025-04`. */
  released: string;
  /** Parameters that a token uses, of a mixture of experts. */
  activeParameters?: number;
  /** Absent if the makers recommend nothing, or nothing that the sources tell. */
  sampling?: CatalogSampling;
  /** One line on what it is good for. */
  goodFor: string;
  /** Pages that have these facts. */
  sources: readonly string[];
}

/** The facts that files have about a model. */
export interface CatalogNumbers {
  /** Elements of the model's tensors, without those of a projector. */
  parameters: number;
  /** Bytes of all downloads, with the projector. */
  bytes: number;
  /** Longest sequence that the model supports, in tokens. */
  contextTokens: number;
  /**
   * Bytes of memory by the loader's own plan, with the projector: for a context of 4,096 and of 16,384 tokens in one sequence, or of
   * the model's own context if that is shorter; KV cache in f16.
   */
  memory: { context4k: number; context16k: number };
  /** The largest buffer that a kernel has to see as a whole, with a context of 4,096 tokens. */
  largestBufferBytes: number;
  /**
   * `headers`: computed from the headers of the real files. Otherwise from the published numbers of the architecture, without the files:
   * memory is approximate within a few percent, and so is `bytes` for `shape`. For `size`, `bytes` is the size of the files as several public
   * projects record it.
   */
  verified: "headers" | "size" | "shape";
}

/** A model of the catalog. */
export type CatalogModel = CatalogFacts & CatalogNumbers;
