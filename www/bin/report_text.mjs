//! A report of `inspectModel` as lines for people. Decides nothing.

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"];

function size(bytes) {
  const power = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), UNITS.length - 1);
  const value = bytes / 1024 ** power;
  return `${power === 0 ? bytes : value.toFixed(value < 10 ? 2 : 1)} ${UNITS[power]}`;
}

function count(number) {
  for (const [unit, factor] of [
    ["B", 1e9],
    ["M", 1e6],
    ["k", 1e3],
  ]) {
    if (number >= factor)
      return `${(number / factor).toFixed(number < 10 * factor ? 2 : 1)} ${unit}`;
  }
  return String(number);
}

/** Texts out of a file may hold anything, escape sequences included. */
const quoted = (text) => JSON.stringify(text).replace(/\p{Cc}/gu, "?");

const token = ({ id, text }) => `${quoted(text)} (${id})`;

const row = (name, text) => `${name.padEnd(16)}${text}`;

function fileRow({ kind, files }, bytes) {
  if (kind === "safetensors") {
    return row("folder", `${size(bytes)} in ${files} safetensors file${files === 1 ? "" : "s"}`);
  }
  return row("file", files === 1 ? size(bytes) : `${size(bytes)} in ${files} parts`);
}

function modelRows({ name, architecture, parameters, loaded_bytes, tensor_types, ...rest }) {
  const { hyperparameters } = rest;
  const rows = [];
  if (name !== null) rows.push(row("name", quoted(name)));
  rows.push(row("architecture", architecture === null ? "not named" : quoted(architecture)));
  rows.push(row("parameters", count(parameters)));
  rows.push(row("tensors", `${size(loaded_bytes)} as they are loaded`));
  for (const [index, { type, tensors, elements, bytes }] of tensor_types.entries()) {
    const shown = `${type.padEnd(7)} ${String(tensors).padStart(4)} tensors ${count(elements).padStart(9)} elements ${size(bytes).padStart(11)}`;
    rows.push(row(index === 0 ? "tensor types" : "", shown));
  }
  if (hyperparameters !== null) rows.push(...sizeRows(hyperparameters));
  return rows;
}

function sizeRows(sizes) {
  const { layers, dim, ffn_dim, experts, heads, head_dim, kv_heads, vocab, windows, rope } = sizes;
  const each = experts === null ? "" : ` in each of ${experts.count} experts, ${experts.used} used`;
  const rows = [
    row("context", `${sizes.context_tokens} tokens`),
    row("layers", `${layers} of width ${dim}, feed-forward ${ffn_dim}${each}`),
    row("attention", `${heads} heads of ${head_dim}, ${kv_heads} of keys and values`),
    row("vocabulary", `${vocab} rows`),
    row("positions", rope === null ? "learned" : ropeText(rope)),
  ];
  for (const window of windows) {
    rows.push(row("window", `${window.tokens} tokens in ${window.layers} of ${layers} layers`));
  }
  return rows;
}

function ropeText({ base, local_base, dims, scaling, factor, original_tokens, unrotated_layers }) {
  const parts = [`rope of ${dims} elements, base ${base}`];
  if (local_base !== null) parts.push(`${local_base} in local layers`);
  if (scaling !== "none") {
    const times = factor === null ? "" : ` times ${factor}`;
    const from = original_tokens === null ? "" : ` from ${original_tokens} tokens`;
    parts.push(`scaling ${scaling}${times}${from}`);
  }
  if (unrotated_layers > 0) parts.push(`none in ${unrotated_layers} layers`);
  return parts.join(", ");
}

function tokenizerRows({ kind, pre_tokenizer, tokens, bos, eos, ends, ...rest }) {
  const pre = pre_tokenizer === null ? "" : `, pre-tokenizer ${quoted(pre_tokenizer)}`;
  const template = `${rest.has_chat_template ? "a" : "no"} chat template`;
  const rows = [row("tokenizer", `${kind}${pre}, ${tokens} tokens, ${template}`)];
  const added = (isAdded) => (isAdded ? ", added to prompts" : "");
  if (bos !== null) rows.push(row("  start", `${token(bos)}${added(rest.adds_bos)}`));
  if (eos !== null) rows.push(row("  end", `${token(eos)}${added(rest.adds_eos)}`));
  const further = ends.filter(({ id }) => id !== eos?.id);
  if (further.length > 0) rows.push(row("  ends as well", further.map(token).join(", ")));
  if (rest.fill_in_middle !== null) {
    rows.push(row("  fill in middle", rest.fill_in_middle.map(token).join(", ")));
  }
  return rows;
}

function memoryRows(memory) {
  const { context_tokens, kv_pool_tokens, kv_format, largest_buffer } = memory;
  const kv = `for ${kv_pool_tokens} tokens as ${kv_format}`;
  return [
    row("GPU memory", `${size(memory.total_bytes)} for a context of ${context_tokens} tokens`),
    row("  weights", size(memory.weight_bytes)),
    row("  keys, values", `${size(memory.kv_bytes)} ${kv}`),
    row("  scratch", `about ${size(memory.scratch_bytes)}`),
    row("largest buffer", `${size(largest_buffer.bytes)}: ${quoted(largest_buffer.name)}`),
  ];
}

/** The report, with a line break at its end. */
export function reportText({ file_bytes, container, model, tokenizer, ...verdicts }) {
  const { devices, runs, refusal, version } = verdicts;
  const rows = [fileRow(container, file_bytes)];
  if (model !== null) rows.push(...modelRows(model));
  if (tokenizer !== null) rows.push(...tokenizerRows(tokenizer));
  if (model?.memory) rows.push(...memoryRows(model.memory));
  for (const device of devices) {
    const verdict = device.refusal === null ? "runs" : "does not run";
    rows.push(row("  buffers to", `${size(device.max_binding_bytes)}: ${verdict}`));
  }
  const verdict = runs ? "It runs" : `It does not run: ${refusal.message.replace(/\p{Cc}/gu, "?")}`;
  return `${rows.join("\n")}\n\n${verdict} (inpage ${version}).\n`;
}
