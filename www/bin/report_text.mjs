//! Formats a report of `inspectModel` as text.

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

/** Texts from a file may contain anything, including escape sequences. */
const quoted = (text) => JSON.stringify(text).replace(/\p{Cc}/gu, "?");

const token = ({ id, text }) => `${quoted(text)} (${id})`;

const row = (name, text) => `${name.padEnd(16)}${text}`;

function fileRow({ kind, files }, bytes) {
  if (kind === "safetensors") {
    return row("folder", `${size(bytes)} in ${files} safetensors file${files === 1 ? "" : "s"}`);
  }
  return row("file", files === 1 ? size(bytes) : `${size(bytes)} in ${files} parts`);
}

function modelRows({ name, architecture, parameters, loadedBytes, tensorTypes, ...rest }) {
  const { hyperparameters } = rest;
  const rows = [];
  if (name !== null) rows.push(row("name", quoted(name)));
  rows.push(row("architecture", architecture === null ? "not specified" : quoted(architecture)));
  rows.push(row("parameters", count(parameters)));
  rows.push(row("tensors", `${size(loadedBytes)} after loading`));
  for (const [index, type] of tensorTypes.entries()) {
    rows.push(row(index === 0 ? "tensor types" : "", tensorTypeText(type)));
  }
  if (hyperparameters !== null) rows.push(...sizeRows(hyperparameters));
  return rows;
}

/** The rows of a file that is only a projector, or of the tower of a folder. */
function projectorRows({ name, kind, parameters, loadedBytes, tensorTypes, hyperparameters }) {
  const rows = [row("projector", kind === null ? "not specified" : quoted(kind))];
  if (name !== null) rows.push(row("  name", quoted(name)));
  rows.push(row("  parameters", count(parameters)));
  rows.push(row("  tensors", size(loadedBytes)));
  for (const [index, type] of tensorTypes.entries()) {
    rows.push(row(index === 0 ? "  tensor types" : "", tensorTypeText(type)));
  }
  if (hyperparameters === null) return rows;
  const { layers, dim, ffnDim, heads, patchPixels, images, placeholder } = hyperparameters;
  rows.push(
    row("  layers", `${layers} of width ${dim}, feed-forward ${ffnDim}, ${heads} heads`),
    row("  images", `${imageText(images)}, patches of ${patchPixels}x${patchPixels}`),
    row("  tokens", `${tokensText(images)} in place of ${quoted(placeholder)}`),
    row("  fits", `text models of width ${hyperparameters.embeddingLength}`),
  );
  return rows;
}

function imageText({ kind, sidePixels, longestEdgePixels }) {
  const square = `${sidePixels}x${sidePixels} pixels`;
  switch (kind) {
    case "square":
      return `stretched to ${square}`;
    case "tiles":
      return `a longest side of ${longestEdgePixels} pixels, cut into tiles of ${square}`;
    default:
      return `near their own size, in squares of ${square}`;
  }
}

const tokensText = ({ minTokens, maxTokens }) =>
  minTokens === maxTokens
    ? `${maxTokens} for an image`
    : `${minTokens} to ${maxTokens} for an image`;

const tensorTypeText = ({ type, tensors, elements, bytes }) =>
  `${type.padEnd(7)} ${String(tensors).padStart(4)} tensors ${count(elements).padStart(9)} elements ${size(bytes).padStart(11)}`;

function sizeRows(sizes) {
  const { layers, dim, ffnDim, experts, heads, headDim, kvHeads, vocab, windows, rope } = sizes;
  const each = experts === null ? "" : ` in each of ${experts.count} experts, ${experts.used} used`;
  const rows = [
    row("context", `${sizes.contextTokens} tokens`),
    row("layers", `${layers} of width ${dim}, feed-forward ${ffnDim}${each}`),
    row("attention", `${heads} heads of ${headDim}, ${kvHeads} KV heads`),
    ...(sizes.recurrentLayers > 0
      ? [row("recurrent", `${sizes.recurrentLayers} of ${layers} layers`)]
      : []),
    row("vocabulary", `${vocab} rows`),
    row("positions", rope === null ? "learned" : ropeText(rope)),
  ];
  for (const window of windows) {
    rows.push(row("window", `${window.tokens} tokens in ${window.layers} of ${layers} layers`));
  }
  return rows;
}

function ropeText({ base, localBase, dims, scaling, factor, originalTokens, unrotatedLayers }) {
  const parts = [`rope of ${dims} elements, base ${base}`];
  if (localBase !== null) parts.push(`${localBase} in local layers`);
  if (scaling !== "none") {
    const times = factor === null ? "" : ` times ${factor}`;
    const from = originalTokens === null ? "" : ` from ${originalTokens} tokens`;
    parts.push(`scaling ${scaling}${times}${from}`);
  }
  if (unrotatedLayers > 0) parts.push(`none in ${unrotatedLayers} layers`);
  return parts.join(", ");
}

function tokenizerRows({ kind, preTokenizer, tokens, bos, eos, ends, ...rest }) {
  const pre = preTokenizer === null ? "" : `, pre-tokenizer ${quoted(preTokenizer)}`;
  const template = `${rest.hasChatTemplate ? "a" : "no"} chat template`;
  const rows = [row("tokenizer", `${kind}${pre}, ${tokens} tokens, ${template}`)];
  const added = (isAdded) => (isAdded ? ", added to prompts" : "");
  if (bos !== null) rows.push(row("  start", `${token(bos)}${added(rest.addsBos)}`));
  if (eos !== null) rows.push(row("  end", `${token(eos)}${added(rest.addsEos)}`));
  const further = ends.filter(({ id }) => id !== eos?.id);
  if (further.length > 0) rows.push(row("  other ends", further.map(token).join(", ")));
  if (rest.fillInMiddle !== null) {
    rows.push(row("  fill in middle", rest.fillInMiddle.map(token).join(", ")));
  }
  return rows;
}

function memoryRows(memory) {
  const { contextTokens, kvPoolTokens, kvFormat, largestBuffer } = memory;
  const kv = `for ${kvPoolTokens} tokens as ${kvFormat}`;
  return [
    row("GPU memory", `${size(memory.totalBytes)} for a context of ${contextTokens} tokens`),
    row("  weights", size(memory.weightBytes)),
    row("  KV cache", `${size(memory.kvBytes)} ${kv}`),
    ...(memory.stateBytes > 0 ? [row("  recurrent states", size(memory.stateBytes))] : []),
    row("  scratch", `about ${size(memory.scratchBytes)}`),
    row("largest buffer", `${size(largestBuffer.bytes)}: ${quoted(largestBuffer.name)}`),
  ];
}

/** The report, with a line break at its end. */
export function reportText({ fileBytes, container, model, projector, tokenizer, ...verdicts }) {
  const { devices, runs, refusal, version } = verdicts;
  const rows = [fileRow(container, fileBytes)];
  if (model !== null) rows.push(...modelRows(model));
  if (tokenizer !== null) rows.push(...tokenizerRows(tokenizer));
  if (projector !== null) rows.push(...projectorRows(projector));
  if (model?.memory) rows.push(...memoryRows(model.memory));
  for (const device of devices) {
    const verdict = device.refusal === null ? "runs" : "does not run";
    rows.push(row("  buffers to", `${size(device.maxBindingBytes)}: ${verdict}`));
  }
  const where =
    projector !== null && model === null ? " beside a text model, as its projector" : "";
  const verdict = runs
    ? `It runs${where}`
    : `It does not run: ${refusal.message.replace(/\p{Cc}/gu, "?")}`;
  return `${rows.join("\n")}\n\n${verdict} (inpage ${version}).\n`;
}
