//! The numbers of the architectures of the catalog's models, from their makers' `config.json`, for models whose files could not be
//! read. `header.mjs` makes headers of GGUF files of them, and the loader's plan does the rest.

const smollm2 = { architecture: "llama", vocab: 49152, context: 8192, tied: true };
const llama3 = { architecture: "llama", vocab: 128256, context: 131072, tied: true };
const qwen25 = { architecture: "qwen2", vocab: 151936, context: 32768, headDim: 128 };
const qwen25_05b = {
  ...qwen25,
  layers: 24,
  dim: 896,
  ffn: 4864,
  heads: 14,
  kvHeads: 2,
  headDim: 64,
};
const qwen25_15b = { ...qwen25, layers: 28, dim: 1536, ffn: 8960, heads: 12, kvHeads: 2 };
const qwen25_3b = { ...qwen25, layers: 36, dim: 2048, ffn: 11008, heads: 16, kvHeads: 2 };
const qwen25_7b = {
  ...{ ...qwen25, vocab: 152064, layers: 28 },
  ...{ dim: 3584, ffn: 18944, heads: 28, kvHeads: 4 },
};
const qwen3 = { architecture: "qwen3", vocab: 151936, context: 40960, headDim: 128, tied: true };
const qwen3_06b = { ...qwen3, layers: 28, dim: 1024, ffn: 3072, heads: 16, kvHeads: 8 };
const qwen3_17b = { ...qwen3, layers: 28, dim: 2048, ffn: 6144, heads: 16, kvHeads: 8 };
const qwen3_4b = { ...qwen3, layers: 36, dim: 2560, ffn: 9728, heads: 32, kvHeads: 8 };
const qwen3vl = { architecture: "qwen3vl", context: 262144 };
const gemma3 = { architecture: "gemma3", vocab: 262144, context: 32768, headDim: 256, tied: true };
const lfm2 = {
  ...{ architecture: "lfm2", layers: 16, vocab: 65536, context: 128000, tied: true, headDim: 64 },
  attentionLayers: [2, 5, 8, 10, 12, 14],
};
const qwen35 = {
  ...{ architecture: "qwen35", vocab: 248320, context: 262144, tied: true, headDim: 256 },
  interval: 4,
};
/** A gated delta net with this number of value heads. */
const deltaNet = (heads) => ({
  ...{ conv_kernel: 4, state_size: 128, group_count: 16, time_step_rank: heads },
  inner_size: 128 * heads,
});
const granite4 = {
  ...{ architecture: "granitehybrid", vocab: 100352, tied: true, heads: 12, kvHeads: 4 },
};
/** A Mamba 2 layer with 48 heads. */
const mamba2 = (inner) => ({
  ...{ conv_kernel: 4, state_size: 128, group_count: 1, time_step_rank: 48, inner_size: inner },
});
const bert = { architecture: "bert", vocab: 30522, context: 512, layers: 12 };
/** The pooling of rerankers. */
const RANK = 4;

/**
 * The shapes of the models by their names in the catalog. `type` is the type of the file as llama.cpp's quantizer names it. `projectorBytes` is the
 * published size of the projector's file. `labels` are the outputs of a reranker.
 */
export const SHAPES = {
  "smollm2-135m-instruct": {
    ...{ ...smollm2, layers: 30, dim: 576, ffn: 1536, heads: 9, kvHeads: 3, headDim: 64 },
    type: "Q8_0",
  },
  "smollm2-360m-instruct": {
    ...{ ...smollm2, layers: 32, dim: 960, ffn: 2560, heads: 15, kvHeads: 5, headDim: 64 },
    type: "Q8_0",
  },
  "smollm2-1.7b-instruct": {
    ...{ ...smollm2, layers: 24, dim: 2048, ffn: 8192, heads: 32, kvHeads: 32, headDim: 64 },
    type: "Q4_K_M",
  },
  "smollm3-3b": {
    ...{ architecture: "smollm3", layers: 36, dim: 2048, ffn: 11008, heads: 16, kvHeads: 4 },
    ...{ headDim: 128, vocab: 128256, context: 65536, tied: true, type: "Q4_K_M" },
  },
  "qwen3-0.6b": { ...qwen3_06b, type: "Q8_0" },
  "qwen3-1.7b": { ...qwen3_17b, type: "Q8_0" },
  "qwen3-4b": { ...qwen3_4b, type: "Q4_K_M" },
  "qwen3-4b-instruct-2507": { ...qwen3_4b, context: 262144, type: "Q4_K_M" },
  "qwen3-4b-thinking-2507": { ...qwen3_4b, context: 262144, type: "Q4_K_M" },
  "qwen3.5-0.8b": {
    ...{ ...qwen35, layers: 24, dim: 1024, ffn: 3584, heads: 8, kvHeads: 2, ssm: deltaNet(16) },
    ...{ type: "Q4_K_M", projectorBytes: 204_987_232 },
  },
  "qwen3.5-2b": {
    ...{ ...qwen35, layers: 24, dim: 2048, ffn: 6144, heads: 8, kvHeads: 2, ssm: deltaNet(16) },
    ...{ type: "Q4_K_M", projectorBytes: 668_227_264 },
  },
  "qwen3.5-4b": {
    ...{ ...qwen35, layers: 32, dim: 2560, ffn: 9216, heads: 16, kvHeads: 4, ssm: deltaNet(32) },
    type: "Q4_K_M",
  },
  "qwen2.5-0.5b-instruct": { ...qwen25_05b, type: "Q4_K_M" },
  "qwen2.5-1.5b-instruct": { ...qwen25_15b, type: "Q4_K_M" },
  "qwen2.5-3b-instruct": { ...qwen25_3b, type: "Q4_K_M" },
  "qwen2.5-coder-0.5b-instruct": { ...qwen25_05b, type: "Q4_K_M" },
  "qwen2.5-coder-1.5b-instruct": { ...qwen25_15b, type: "Q4_K_M" },
  "qwen2.5-coder-3b-instruct": { ...qwen25_3b, type: "Q4_K_M" },
  "qwen2.5-coder-7b-instruct": { ...qwen25_7b, type: "Q4_K_M" },
  "deepseek-r1-distill-qwen-1.5b": { ...qwen25_15b, context: 131072, type: "Q4_K_M" },
  "deepseek-r1-distill-qwen-7b": { ...qwen25_7b, context: 131072, type: "Q4_K_M" },
  "llama-3.2-1b-instruct": {
    ...{ ...llama3, layers: 16, dim: 2048, ffn: 8192, heads: 32, kvHeads: 8, headDim: 64 },
    type: "Q4_K_M",
  },
  "llama-3.2-3b-instruct": {
    ...{ ...llama3, layers: 28, dim: 3072, ffn: 8192, heads: 24, kvHeads: 8, headDim: 128 },
    type: "Q4_K_M",
  },
  "llama-3.1-8b-instruct": {
    ...{ ...llama3, layers: 32, dim: 4096, ffn: 14336, heads: 32, kvHeads: 8, headDim: 128 },
    ...{ tied: false, type: "Q4_K_M" },
  },
  "tinyllama-1.1b-chat": {
    ...{ architecture: "llama", layers: 22, dim: 2048, ffn: 5632, heads: 32, kvHeads: 4 },
    ...{ headDim: 64, vocab: 32000, context: 2048, type: "Q4_K_M" },
  },
  "mistral-7b-instruct-v0.3": {
    ...{ architecture: "llama", layers: 32, dim: 4096, ffn: 14336, heads: 32, kvHeads: 8 },
    ...{ headDim: 128, vocab: 32768, context: 32768, type: "Q4_K_M" },
  },
  "gemma-3-270m-it": {
    ...{ ...gemma3, layers: 18, dim: 640, ffn: 2048, heads: 4, kvHeads: 1, window: 512 },
    type: "Q8_0",
  },
  "gemma-3-1b-it": {
    ...{ ...gemma3, layers: 26, dim: 1152, ffn: 6912, heads: 4, kvHeads: 1, window: 512 },
    type: "Q4_K_M",
  },
  "gemma-3-4b-it": {
    ...{ ...gemma3, layers: 34, dim: 2560, ffn: 10240, heads: 8, kvHeads: 4, window: 1024 },
    ...{ context: 131072, type: "Q4_K_M", projectorBytes: 851_251_104 },
  },
  "gemma-4-e2b-it": {
    ...{ architecture: "gemma4", layers: 35, dim: 1536, ffn: 6144, heads: 8, kvHeads: 1 },
    ...{ headDim: 512, localHeadDim: 256, interval: 5, sharedLayers: 20, inputs: 256 },
    ...{ vocab: 262144, context: 131072, window: 512, tied: true, type: "Q4_K_M" },
    // The quantizer's own choice is Q6_K.
    ...{ inputsType: "Q5_K", projectorBytes: 985_654_080 },
  },
  "gemma-2-2b-it": {
    ...{ architecture: "gemma2", layers: 26, dim: 2304, ffn: 9216, heads: 8, kvHeads: 4 },
    ...{ headDim: 256, vocab: 256000, context: 8192, window: 4096, tied: true, type: "Q4_K_M" },
  },
  "phi-4-mini-instruct": {
    ...{ architecture: "phi3", layers: 32, dim: 3072, ffn: 8192, heads: 24, kvHeads: 8 },
    ...{ headDim: 128, vocab: 200064, context: 131072, tied: true, type: "Q4_K_M" },
    ropeDims: 96,
  },
  "phi-3.5-mini-instruct": {
    ...{ architecture: "phi3", layers: 32, dim: 3072, ffn: 8192, heads: 32, kvHeads: 32 },
    ...{ headDim: 96, vocab: 32064, context: 131072, type: "Q4_K_M" },
  },
  "granite-3.3-2b-instruct": {
    ...{ architecture: "granite", layers: 40, dim: 2048, ffn: 8192, heads: 32, kvHeads: 8 },
    ...{ headDim: 64, vocab: 49159, context: 131072, tied: true, type: "Q4_K_M" },
  },
  "granite-4.0-h-350m": {
    ...{ ...granite4, layers: 32, dim: 768, ffn: 2048, headDim: 64, context: 32768 },
    ...{ attentionLayers: [10, 13, 17, 27], ssm: mamba2(1536), type: "Q8_0" },
  },
  "granite-4.0-h-1b": {
    ...{ ...granite4, layers: 40, dim: 1536, ffn: 4096, headDim: 128, context: 131072 },
    ...{ attentionLayers: [5, 15, 25, 35], ssm: mamba2(3072), type: "Q4_K_M" },
  },
  "lfm2.5-1.2b-instruct": {
    ...{ ...lfm2, dim: 2048, ffn: 8192, heads: 32, kvHeads: 8, type: "Q4_K_M" },
  },
  "lfm2-350m": { ...lfm2, dim: 1024, ffn: 4608, heads: 16, kvHeads: 8, type: "Q8_0" },
  "lfm2-700m": { ...lfm2, dim: 1536, ffn: 6912, heads: 24, kvHeads: 8, type: "Q4_K_M" },
  "lfm2-1.2b": { ...lfm2, dim: 2048, ffn: 8192, heads: 32, kvHeads: 8, type: "Q4_K_M" },
  "exaone-4.0-1.2b": {
    ...{ architecture: "exaone4", layers: 30, dim: 2048, ffn: 4096, heads: 32, kvHeads: 8 },
    ...{ headDim: 64, vocab: 102400, context: 65536, tied: true, type: "Q4_K_M" },
  },
  "ernie-4.5-0.3b": {
    ...{ architecture: "ernie4_5", layers: 18, dim: 1024, ffn: 3072, heads: 16, kvHeads: 2 },
    ...{ headDim: 128, vocab: 103424, context: 131072, tied: true, type: "Q4_K_M" },
  },
  "olmo-2-1b-instruct": {
    ...{ architecture: "olmo2", layers: 16, dim: 2048, ffn: 8192, heads: 16, kvHeads: 16 },
    ...{ headDim: 128, vocab: 100352, context: 4096, type: "Q4_K_M" },
  },
  "olmoe-1b-7b-instruct": {
    ...{ architecture: "olmoe", layers: 16, dim: 2048, ffn: 1024, heads: 16, kvHeads: 16 },
    ...{ headDim: 128, vocab: 50304, context: 4096, type: "Q4_K_M" },
    ...{ experts: 64, usedExperts: 8 },
  },
  "smolvlm-256m-instruct": {
    ...{ ...smollm2, layers: 30, dim: 576, ffn: 1536, heads: 9, kvHeads: 3, headDim: 64 },
    ...{ vocab: 49280, tied: false, type: "Q8_0", projectorBytes: 103_769_856 },
  },
  "smolvlm-500m-instruct": {
    ...{ ...smollm2, layers: 32, dim: 960, ffn: 2560, heads: 15, kvHeads: 5, headDim: 64 },
    ...{ vocab: 49280, tied: false, type: "Q8_0", projectorBytes: 108_783_360 },
  },
  "smolvlm2-2.2b-instruct": {
    ...{ ...smollm2, layers: 24, dim: 2048, ffn: 8192, heads: 32, kvHeads: 32, headDim: 64 },
    ...{ vocab: 49280, tied: false, type: "Q4_K_M", projectorBytes: 592_523_200 },
  },
  "qwen2.5-vl-3b-instruct": {
    ...{ ...qwen25_3b, architecture: "qwen2vl", context: 128000, tied: true },
    ...{ type: "Q4_K_M", projectorBytes: 844_757_728 },
  },
  "qwen3-vl-2b-instruct": {
    ...{ ...qwen3_17b, ...qwen3vl, type: "Q4_K_M", projectorBytes: 445_053_216 },
  },
  "qwen3-vl-4b-instruct": {
    ...{ ...qwen3_4b, ...qwen3vl, type: "Q4_K_M", projectorBytes: 453_979_904 },
  },
  "qwen3-embedding-0.6b": { ...qwen3_06b, context: 32768, type: "Q8_0", pooling: 3 },
  "embeddinggemma-300m": {
    ...{ architecture: "gemma-embedding", layers: 24, dim: 768, ffn: 1152, heads: 3, kvHeads: 1 },
    ...{ headDim: 256, vocab: 262144, context: 2048, window: 512, tied: true, type: "Q8_0" },
    pooling: 1,
  },
  "nomic-embed-text-v1.5": {
    ...{ architecture: "nomic-bert", layers: 12, dim: 768, ffn: 3072, heads: 12, kvHeads: 12 },
    ...{ headDim: 64, vocab: 30522, context: 2048, type: "Q8_0", pooling: 1 },
  },
  "bge-small-en-v1.5": {
    ...{ ...bert, dim: 384, ffn: 1536, heads: 12, kvHeads: 12, headDim: 32 },
    ...{ type: "Q8_0", pooling: 2 },
  },
  "bge-base-en-v1.5": {
    ...{ ...bert, dim: 768, ffn: 3072, heads: 12, kvHeads: 12, headDim: 64 },
    ...{ type: "Q8_0", pooling: 2 },
  },
  "all-minilm-l6-v2": {
    ...{ ...bert, layers: 6, dim: 384, ffn: 1536, heads: 12, kvHeads: 12, headDim: 32 },
    // A folder in f32, quantized while it is loaded.
    ...{ type: "Q8_0", pooling: 1 },
  },
  "bge-reranker-v2-m3": {
    ...{ architecture: "bert", layers: 24, dim: 1024, ffn: 4096, heads: 16, kvHeads: 16 },
    ...{ headDim: 64, vocab: 250002, context: 8192, tokenTypes: 1, unigram: true, type: "Q8_0" },
    ...{ pooling: RANK, labels: ["LABEL_0"] },
  },
  "qwen3-reranker-0.6b": {
    ...{ ...qwen3_06b, vocab: 151669, type: "Q8_0" },
    ...{ pooling: RANK, labels: ["yes", "no"] },
    rerankTemplate: "{query} {document}",
  },
};
