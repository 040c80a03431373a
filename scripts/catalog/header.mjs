//! Makes the header of a GGUF file from the numbers of an architecture: metadata, and the tensors in the types that llama.cpp's
//! quantizer gives them. The file has no weights.

const [U32, F32, BOOL, STRING, ARRAY, I32] = [4, 6, 7, 8, 9, 5];
/** Types of tensors: number in files, elements and bytes of a block. */
const TYPES = {
  F32: [0, 1, 4],
  BF16: [30, 1, 2],
  Q5_0: [6, 32, 22],
  Q8_0: [8, 32, 34],
  Q4_K: [12, 256, 144],
  Q5_K: [13, 256, 176],
  Q6_K: [14, 256, 210],
};
/** The types that the quantizer takes instead for rows that are not whole blocks. */
const FALLBACKS = { Q4_K: "Q5_0", Q5_K: "Q5_0", Q6_K: "Q8_0" };
const ALIGNMENT = 32;
const aligned = (at) => Math.ceil(at / ALIGNMENT) * ALIGNMENT;

/** Bytes of a token of the vocabulary: its text, type and share of the merges, as in the published files of Qwen and Llama. */
const TOKEN_BYTES = 40;

/** `{ header, fileBytes }` of a shape of `shapes.mjs`. */
export function headerOf(shape) {
  const tensors = tensorsOf(shape);
  let at = 0;
  for (const tensor of tensors) {
    tensor.offset = at;
    const [, elements, bytes] = TYPES[tensor.type];
    const count = tensor.dims.reduce((product, size) => product * size, 1);
    at = aligned(at + (count / elements) * bytes);
  }
  const entries = metadataOf(shape);
  const writer = new Writer();
  writer.bytes(Buffer.from("GGUF"));
  writer.u32(3);
  writer.u64(tensors.length);
  writer.u64(entries.length);
  for (const [key, type, value] of entries) {
    writer.string(key);
    writer.u32(type);
    writer.value(type, value);
  }
  for (const { name, dims, type, offset } of tensors) {
    writer.string(name);
    writer.u32(dims.length);
    for (const dim of dims) writer.u64(dim);
    writer.u32(TYPES[type][0]);
    writer.u64(offset);
  }
  const written = Buffer.concat(writer.parts);
  const header = Buffer.concat([written, Buffer.alloc(aligned(written.length) - written.length)]);
  const bytes = header.length + at;
  return { header, sparseBytes: bytes, fileBytes: at + shape.vocab * TOKEN_BYTES };
}

class Writer {
  parts = [];
  bytes(buffer) {
    this.parts.push(buffer);
  }
  #number(size, write) {
    const buffer = Buffer.alloc(size);
    write(buffer);
    this.parts.push(buffer);
  }
  u32(value) {
    this.#number(4, (buffer) => buffer.writeUInt32LE(value));
  }
  u64(value) {
    this.#number(8, (buffer) => buffer.writeBigUInt64LE(BigInt(value)));
  }
  string(text) {
    this.u64(Buffer.byteLength(text));
    this.bytes(Buffer.from(text));
  }
  value(type, value) {
    if (type === STRING) this.string(value);
    else if (type === F32) this.#number(4, (buffer) => buffer.writeFloatLE(value));
    else if (type === I32) this.#number(4, (buffer) => buffer.writeInt32LE(value));
    else if (type === BOOL) this.bytes(Buffer.from([value ? 1 : 0]));
    else if (type === U32) this.u32(value);
    else {
      const [of, items] = value;
      this.u32(of);
      this.u64(items.length);
      for (const item of items) this.value(of, item);
    }
  }
}

const isEncoder = ({ architecture }) => /bert/.test(architecture);

function metadataOf(shape) {
  const { architecture, layers, dim, ffn, heads, kvHeads, headDim, context } = shape;
  const own = (key, type, value) => [`${architecture}.${key}`, type, value];
  const entries = [
    ["general.architecture", STRING, architecture],
    own("block_count", U32, layers),
    own("context_length", U32, context),
    own("embedding_length", U32, dim),
    architecture === "gemma4"
      ? own("feed_forward_length", ARRAY, [I32, layersOf(shape, (layer) => widthOf(shape, layer))])
      : own("feed_forward_length", U32, ffn),
    own("attention.head_count", U32, heads),
    own("attention.key_length", U32, headDim),
    own("attention.value_length", U32, headDim),
    own("rope.freq_base", F32, 1e6),
    own("attention.layer_norm_rms_epsilon", F32, 1e-6),
    own("attention.layer_norm_epsilon", F32, 1e-6),
    ...tokenizerOf(shape),
  ];
  const { attentionLayers } = shape;
  const kvHeadsOf = (layer) => (attentionLayers.includes(layer) ? kvHeads : 0);
  entries.push(
    attentionLayers
      ? own("attention.head_count_kv", ARRAY, [I32, layersOf(shape, kvHeadsOf)])
      : own("attention.head_count_kv", U32, kvHeads),
  );
  if (shape.window) entries.push(own("attention.sliding_window", U32, shape.window));
  if (shape.pooling !== undefined) entries.push(own("pooling_type", U32, shape.pooling));
  if (shape.labels) entries.push(own("classifier.output_labels", ARRAY, [STRING, shape.labels]));
  if (shape.rerankTemplate) {
    entries.push(["tokenizer.chat_template.rerank", STRING, shape.rerankTemplate]);
  }
  if (shape.experts) {
    entries.push(own("expert_count", U32, shape.experts));
    entries.push(own("expert_used_count", U32, shape.usedExperts));
  }
  if (architecture === "lfm2") entries.push(own("shortconv.l_cache", U32, 3));
  for (const [key, value] of Object.entries(shape.ssm ?? {})) {
    entries.push(own(`ssm.${key}`, U32, value));
  }
  if (architecture === "qwen35") {
    entries.push(own("full_attention_interval", U32, shape.interval));
    entries.push(own("rope.dimension_count", U32, headDim / 4));
    entries.push(own("rope.dimension_sections", ARRAY, [I32, [11, 11, 10, 0]]));
  }
  if (architecture === "gemma4") {
    const isLocal = layersOf(shape, (layer) => !isFull(shape, layer));
    entries.push(own("attention.sliding_window_pattern", ARRAY, [BOOL, isLocal]));
    entries.push(own("attention.shared_kv_layers", U32, shape.sharedLayers));
    entries.push(own("embedding_length_per_layer_input", U32, shape.inputs));
    for (const key of ["attention.key_length_swa", "attention.value_length_swa"]) {
      entries.push(own(key, U32, shape.localHeadDim));
    }
    entries.push(own("rope.dimension_count_swa", U32, shape.localHeadDim));
  }
  if (architecture === "granitehybrid") entries.push(own("rope.scaling.finetuned", BOOL, false));
  if (architecture === "phi3") {
    entries.push(own("rope.dimension_count", U32, shape.ropeDims ?? headDim));
    entries.push(own("rope.scaling.original_context_length", U32, 4096));
  }
  if (/vl$/.test(architecture)) {
    const [sections] = [architecture === "qwen3vl" ? [24, 20, 20, 0] : [16, 24, 24, 0]];
    entries.push(own("rope.dimension_sections", ARRAY, [I32, sections]));
  }
  if (architecture === "qwen3vl") entries.push(own("n_deepstack_layers", U32, 3));
  if (/^granite/.test(architecture)) {
    for (const key of ["attention.scale", "embedding_scale", "residual_scale", "logit_scale"]) {
      entries.push(own(key, F32, 1));
    }
  }
  return entries;
}

const layersOf = ({ layers }, value) => Array.from({ length: layers }, (_, layer) => value(layer));

/** Whether a layer attends to all tokens, where others have a window or a recurrence. */
function isFull({ attentionLayers, interval }, layer) {
  return attentionLayers ? attentionLayers.includes(layer) : (layer + 1) % interval === 0;
}

/** The width of a feed-forward: twice the usual one in layers without keys of their own. */
function widthOf({ ffn, layers, sharedLayers = 0 }, layer) {
  return layer < layers - sharedLayers ? ffn : 2 * ffn;
}

/** A vocabulary of the right size. Its tokens have no meaning: the plan depends on their number alone. */
function tokenizerOf(shape) {
  const tokens = Array.from({ length: shape.vocab }, (_, index) => `t${index}`);
  const types = [ARRAY, [I32, tokens.map(() => 1)]];
  if (shape.unigram) return unigramOf(tokens);
  if (isEncoder(shape)) {
    const special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
    return [
      ["tokenizer.ggml.model", STRING, "bert"],
      ["tokenizer.ggml.tokens", ARRAY, [STRING, [...special, ...tokens.slice(special.length)]]],
      ["tokenizer.ggml.token_type", ...types],
      ["tokenizer.ggml.unknown_token_id", U32, 1],
      ["tokenizer.ggml.cls_token_id", U32, 2],
      ["tokenizer.ggml.seperator_token_id", U32, 3],
    ];
  }
  return [
    ["tokenizer.ggml.model", STRING, "gpt2"],
    ["tokenizer.ggml.pre", STRING, "qwen2"],
    ["tokenizer.ggml.tokens", ARRAY, [STRING, tokens]],
    ["tokenizer.ggml.token_type", ...types],
    ["tokenizer.ggml.merges", ARRAY, [STRING, []]],
    ["tokenizer.ggml.eos_token_id", U32, 0],
  ];
}

/** The tokenizer of XLM-RoBERTa: pieces with scores. */
function unigramOf(tokens) {
  const special = ["<s>", "<pad>", "</s>", "<unk>"];
  const [NORMAL, UNKNOWN, CONTROL] = [1, 2, 3];
  const types = tokens.map((_, id) => (id < 3 ? CONTROL : id === 3 ? UNKNOWN : NORMAL));
  return [
    ["tokenizer.ggml.model", STRING, "t5"],
    ["tokenizer.ggml.pre", STRING, "default"],
    ["tokenizer.ggml.tokens", ARRAY, [STRING, [...special, ...tokens.slice(special.length)]]],
    ["tokenizer.ggml.scores", ARRAY, [F32, tokens.map((_, id) => -id)]],
    ["tokenizer.ggml.token_type", ARRAY, [I32, types]],
    ["tokenizer.ggml.token_type_count", U32, 1],
    ["tokenizer.ggml.bos_token_id", U32, 0],
    ["tokenizer.ggml.eos_token_id", U32, 2],
    ["tokenizer.ggml.seperator_token_id", U32, 2],
    ["tokenizer.ggml.padding_token_id", U32, 1],
    ["tokenizer.ggml.unknown_token_id", U32, 3],
    ["tokenizer.ggml.add_bos_token", BOOL, true],
    ["tokenizer.ggml.add_eos_token", BOOL, true],
  ];
}

function tensorsOf(shape) {
  const { layers, dim, vocab, tied = false } = shape;
  const tensors = [];
  const vector = (name, size, suffix = "weight") =>
    tensors.push({
      ...{ name: suffix ? `${name}.${suffix}` : name, dims: [size].flat() },
      type: "F32",
    });
  const matrix = (name, cols, rows, type = "Q4_K") => {
    let chosen = shape.type === "Q8_0" ? "Q8_0" : type;
    if (cols % TYPES[chosen][1] !== 0) chosen = FALLBACKS[chosen];
    tensors.push({ name: `${name}.weight`, dims: [cols, rows].flat(), type: chosen });
  };
  const encoder = isEncoder(shape);
  matrix("token_embd", dim, vocab, tied ? "Q6_K" : "Q4_K");
  if (encoder) encoderEnds(shape, vector, tensors);
  else if (shape.architecture === "lfm2") vector("token_embd_norm", dim);
  else vector("output_norm", dim);
  if (!tied && !encoder) matrix("output", dim, vocab, "Q6_K");
  if (shape.architecture === "gemma4") {
    matrix("per_layer_token_embd", shape.inputs * layers, vocab, shape.inputsType);
    tensors.push({
      ...{ name: "per_layer_model_proj.weight", dims: [dim, shape.inputs * layers] },
      type: "BF16",
    });
    vector("per_layer_proj_norm", shape.inputs);
    vector("rope_freqs", shape.headDim / 2);
  }
  if (shape.architecture === "phi3") {
    const pairs = (shape.ropeDims ?? shape.headDim) / 2;
    vector("rope_factors_long", pairs);
    vector("rope_factors_short", pairs);
  }
  for (let layer = 0; layer < layers; layer++) {
    const name = (part) => `blk.${layer}.${part}`;
    const one = {
      ...{ shape, layer, more: hasMoreBits(layer, layers) ? "Q6_K" : "Q4_K" },
      vector: (part, size, suffix) => vector(name(part), size, suffix),
      matrix: (part, cols, rows, type) => matrix(name(part), cols, rows, type),
    };
    mixer(one);
    feedForward(one);
    norms(one);
  }
  if (shape.labels) classifier(shape, vector, matrix);
  return tensors;
}

/** The head of a reranker: two layers of BERT models, whose files hold one output as a vector; one layer of others. */
function classifier(shape, vector, matrix) {
  const { dim, labels } = shape;
  if (!isEncoder(shape)) {
    matrix("cls.output", dim, labels.length);
    return;
  }
  matrix("cls", dim, dim);
  vector("cls", dim, "bias");
  vector("cls.output", dim);
  vector("cls.output", labels.length, "bias");
}

/** The layers whose `attn_v` and `ffn_down` have six bits in Q4_K_M. */
function hasMoreBits(layer, layers) {
  const eighth = Math.floor(layers / 8);
  return layer < eighth || layer >= Math.floor((7 * layers) / 8) || (layer - eighth) % 3 === 2;
}

function encoderEnds({ architecture, dim, context, tokenTypes = 2 }, vector, tensors) {
  if (architecture === "bert") {
    tensors.push({ name: "position_embd.weight", dims: [dim, context], type: "F32" });
  }
  // A single row is a vector.
  const types = tokenTypes === 1 ? [dim] : [dim, tokenTypes];
  tensors.push({ name: "token_types.weight", dims: types, type: "F32" });
  for (const suffix of ["weight", "bias"]) vector("token_embd_norm", dim, suffix);
}

/** A gated delta net (`qwen35`) or Mamba 2 (`granitehybrid`). */
function recurrence({ shape, vector, matrix }) {
  const { architecture, dim, ssm } = shape;
  const { inner_size: inner, time_step_rank: heads, group_count: groups } = ssm;
  const channels = inner + 2 * groups * ssm.state_size;
  vector("ssm_dt", heads, "bias");
  vector("ssm_conv1d", [ssm.conv_kernel, channels]);
  matrix("ssm_out", inner, dim);
  if (architecture === "qwen35") {
    matrix("attn_qkv", dim, channels, "Q5_K");
    matrix("attn_gate", dim, inner);
    matrix("ssm_alpha", dim, heads);
    matrix("ssm_beta", dim, heads);
    vector("ssm_a", heads, "");
    vector("ssm_norm", inner / heads);
    return;
  }
  matrix("ssm_in", dim, inner + channels + heads);
  vector("ssm_conv1d", channels, "bias");
  vector("ssm_a", [1, heads], "");
  vector("ssm_d", [1, heads], "");
  vector("ssm_norm", [inner / groups, groups]);
}

function mixer(one) {
  const { shape, layer, more, vector, matrix } = one;
  const { architecture, dim, heads, kvHeads } = shape;
  const isLocal = architecture === "gemma4" && !isFull(shape, layer);
  const headDim = isLocal ? shape.localHeadDim : shape.headDim;
  const [q, kv] = [heads * headDim, kvHeads * headDim];
  if (shape.ssm && !isFull(shape, layer)) {
    recurrence(one);
    return;
  }
  if (architecture === "lfm2" && !isFull(shape, layer)) {
    matrix("shortconv.in_proj", dim, 3 * dim);
    matrix("shortconv.out_proj", dim, dim);
    // F32, as the quantizer leaves it.
    vector("shortconv.conv", [3, dim]);
    return;
  }
  if (architecture === "phi3" || architecture === "nomic-bert") {
    matrix("attn_qkv", dim, q + 2 * kv, "Q5_K");
  } else {
    // The matrix of queries of qwen35 also holds the rows of the output gate.
    matrix("attn_q", dim, architecture === "qwen35" ? 2 * q : q);
    matrix("attn_k", dim, kv);
    matrix("attn_v", dim, kv, more);
  }
  matrix("attn_output", q, dim);
  if (/^(qwen2|qwen2vl|bert)$/.test(architecture)) {
    vector("attn_q", q, "bias");
    vector("attn_k", kv, "bias");
    vector("attn_v", kv, "bias");
  }
  if (architecture === "bert") vector("attn_output", dim, "bias");
  if (/^(qwen3|qwen3vl|qwen35|gemma3|gemma4|gemma-embedding|exaone4|lfm2)$/.test(architecture)) {
    vector("attn_q_norm", headDim);
    vector("attn_k_norm", headDim);
  }
  if (/^olmo/.test(architecture)) {
    vector("attn_q_norm", q);
    vector("attn_k_norm", kv);
  }
}

function feedForward({ shape, layer, more, vector, matrix }) {
  const { architecture, dim, experts } = shape;
  const ffn = widthOf(shape, layer);
  if (architecture === "gemma4") {
    matrix("inp_gate", dim, shape.inputs);
    matrix("proj", shape.inputs, dim);
    vector("post_norm", dim);
    vector("layer_output_scale", 1);
  }
  if (experts) {
    vector("ffn_gate_inp", [dim, experts]);
    matrix("ffn_gate_exps", dim, [ffn, experts]);
    matrix("ffn_up_exps", dim, [ffn, experts]);
    matrix("ffn_down_exps", ffn, [dim, experts], more);
    return;
  }
  if (architecture === "phi3") matrix("ffn_up", dim, 2 * ffn);
  else {
    if (architecture !== "bert") matrix("ffn_gate", dim, ffn);
    matrix("ffn_up", dim, ffn);
  }
  matrix("ffn_down", ffn, dim, more);
  if (architecture === "bert") {
    vector("ffn_up", ffn, "bias");
    vector("ffn_down", dim, "bias");
  }
}

function norms({ shape: { architecture, dim }, vector }) {
  if (/bert/.test(architecture)) {
    for (const suffix of ["weight", "bias"]) {
      vector("attn_output_norm", dim, suffix);
      vector("layer_output_norm", dim, suffix);
    }
    return;
  }
  const isAfterOnly = /^(olmo2|exaone4)$/.test(architecture);
  if (architecture === "qwen35") {
    vector("attn_norm", dim);
    vector("post_attention_norm", dim);
    return;
  }
  if (isAfterOnly || /^gemma(2|3|4|-embedding)$/.test(architecture)) {
    vector("post_attention_norm", dim);
    vector("post_ffw_norm", dim);
  }
  if (isAfterOnly) return;
  vector("attn_norm", dim);
  vector("ffn_norm", dim);
}
