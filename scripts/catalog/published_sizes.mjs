//! Sizes of files on the hub that at least two public projects record in agreement, most of them beside a revision and a SHA-256. They
//! stand in the catalog until the headers of the files are read; the other numbers come from `shapes.mjs`.

/** Bytes of the model's file by the names of the catalog, without a projector. */
export const PUBLISHED_BYTES = {
  "smollm2-360m-instruct": 386_404_992,
  "smollm2-1.7b-instruct": 1_055_609_536,
  "qwen3-0.6b": 639_446_688,
  "qwen3-1.7b": 1_834_426_016,
  "qwen3-4b": 2_497_280_256,
  "qwen2.5-0.5b-instruct": 491_400_032,
  "qwen2.5-1.5b-instruct": 1_117_320_736,
  "qwen2.5-3b-instruct": 2_104_932_768,
  "llama-3.2-1b-instruct": 807_694_464,
  "llama-3.2-3b-instruct": 2_019_377_696,
  "llama-3.1-8b-instruct": 4_920_739_232,
  "tinyllama-1.1b-chat": 668_788_096,
  "gemma-3-1b-it": 806_058_240,
  "gemma-3-4b-it": 2_489_757_856,
  "lfm2.5-1.2b-instruct": 730_895_168,
  "lfm2-1.2b": 730_893_248,
  "smolvlm-256m-instruct": 175_054_528,
  "qwen3-embedding-0.6b": 639_150_592,
  "nomic-embed-text-v1.5": 146_146_432,
  "all-minilm-l6-v2": 90_868_376,
  "bge-reranker-v2-m3": 635_676_416,
  "qwen3-reranker-0.6b": 639_153_184,
};
