//! `npm run performance -- RESULTS.jsonl...`: turns the JSON lines of `npm run bench -- --json` and of
//! `cargo run --release --example bench -- --json` into the tables of docs/performance.md and the plots beside it.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { main, Remediable, root, say } from "./process.mjs";

const PAGE = join(root, "docs/performance.md");
const PLOTS = join(root, "docs/performance");
const [BEGIN, END] = ["<!-- measured: begin -->", "<!-- measured: end -->"];

function readLines(files) {
  const lines = files.flatMap((name) => {
    const file = resolve(process.env.INIT_CWD ?? process.cwd(), name);
    if (!existsSync(file)) throw new Remediable(`there is no file ${name}`);
    return readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line));
  });
  if (lines.length === 0) throw new Remediable("no JSON lines", "npm run bench -- --json > FILE");
  return lines;
}

/** A model on the CPU has a section for each number of threads. */
const nameOf = ({ model, device, threads }) =>
  device === "cpu" ? `${model} on the CPU, ${threads} thread${threads === 1 ? "" : "s"}` : model;

/** The models in their order in the input, each with its measurements in Chromium. */
function modelsOf(lines) {
  const models = new Map();
  for (const line of lines.filter(({ bench }) => bench === "chromium")) {
    // A peer names the model differently; its line belongs to the run in which it occurs.
    const name = line.name === "peer" ? [...models.keys()].at(-1) : nameOf(line);
    const model = models.get(name) ?? { name, peers: [], batches: [], contexts: [], facts: line };
    if (line.name === "peer") model.peers.push(line);
    else if (line.name === "batch") model.batches.push(line);
    else if (line.name === "context") model.contexts.push(line);
    else model[line.name] = line;
    models.set(name, model);
  }
  return [...models.values()];
}

const number = (value) =>
  value === undefined || value === null ? "–" : String(Number(value.toPrecision(3)));

function table(rows) {
  const [head, ...rest] = rows.map((row) => `| ${row.join(" | ")} |`);
  return [head, `|${rows[0].map(() => "---").join("|")}|`, ...rest].join("\n");
}

function section(model) {
  const { adapter, variant, browser } = model.facts;
  const rows = [
    ["runtime", "prefill, tokens/s", "decode, tokens/s", "inpage is faster by (prefill, decode)"],
  ];
  for (const [field, label] of [
    ["greedy", "inpage, greedy"],
    ["sampled", "inpage, sampled"],
  ]) {
    const line = model[field];
    if (line)
      rows.push([label, number(line.prefill_tokens_per_s), number(line.decode_tokens_per_s), ""]);
  }
  for (const peer of model.peers) {
    const times = peer.error
      ? peer.error
      : `${number(peer.prefill_ratio)}, ${number(peer.decode_ratio)}`;
    rows.push([
      `${peer.peer} on ${peer.device}`,
      number(peer.prefill_tokens_per_s),
      number(peer.decode_tokens_per_s),
      times,
    ]);
  }
  const { load, replay, repeated, page } = model;
  const notes = [
    load &&
      `Load ${number(load.first_load_ms)} ms, from the cache ${number(load.second_load_ms)} ms.`,
    repeated &&
      `A prompt of ${repeated.prompt_tokens} tokens: first token after ${number(repeated.first_token_ms)} ms, after ${number(repeated.again_first_token_ms)} ms when all but its end was cached (${number(repeated.saved_share * 100)} % saved).`,
    model.contexts.length > 0 &&
      `By context: ${model.contexts.map((line) => `${line.prompt_tokens} tokens: prefill ${number(line.prefill_tokens_per_s)}, decode ${number(line.decode_tokens_per_s)} tokens/s`).join("; ")}.`,
    model.batches.length > 0 &&
      `Sequences together: ${model.batches.map((line) => `${line.sequences}: ${number(line.tokens_per_s)} tokens/s`).join(", ")}.`,
    page && `Longest task of the page's thread: ${page.longest_task_ms || "under 50"} ms.`,
    replay &&
      `A decode step: ${replay.dispatches_per_step} dispatches (${replay.layers} layers), ${number(replay.us_per_dispatch)} us of CPU each.`,
  ].filter(Boolean);
  return [
    `### ${model.name}`,
    `${browser}, ${adapter}, variant "${variant}".`,
    table(rows),
    ...notes,
    `![decode speed](performance/${plotName(model)})`,
  ].join("\n\n");
}

const plotName = (model) => `${model.name.replace(/[^A-Za-z0-9._-]/g, "_")}.svg`;

/** A model that was measured with images. */
function imageSection(model) {
  const { adapter, variant, browser } = model.facts;
  const { image, load } = model;
  const row = (label, line, ratios) => [
    label,
    number(line.images_per_s),
    number(line.image_ms),
    number(line.first_token_ms),
    ratios,
  ];
  const rows = [
    [
      "runtime",
      "images/s",
      "an image, ms",
      "first token, ms",
      "inpage is faster by (image, first token)",
    ],
    row("inpage", image, ""),
    ...model.peers.map((peer) =>
      row(
        `${peer.peer} on ${peer.device}`,
        peer,
        peer.error ?? `${number(peer.image_ratio)}, ${number(peer.first_token_ratio)}`,
      ),
    ),
  ];
  return [
    `### ${model.name}, images`,
    `${browser}, ${adapter}, variant "${variant}". Images of ${image.side} by ${image.side} pixels, prompts of ${image.prompt_tokens} tokens with them.`,
    table(rows),
    ...(load ? [`Load ${number(load.first_load_ms)} ms.`] : []),
  ].join("\n\n");
}

/** A model that was measured with embeddings. */
function embeddingsSection(model) {
  const { adapter, variant, browser } = model.facts;
  const { embeddings, load } = model;
  const rows = [
    ["runtime", "texts/s", "one text, ms", "inpage is faster by (texts, one text)", "cosine"],
    ["inpage", number(embeddings.texts_per_s), number(embeddings.text_ms), "", ""],
    ...model.peers.map((peer) => [
      `${peer.peer} on ${peer.device}`,
      number(peer.texts_per_s),
      number(peer.text_ms),
      peer.error ?? `${number(peer.texts_ratio)}, ${number(peer.text_ratio)}`,
      number(peer.cosine),
    ]),
  ];
  return [
    `### ${model.name}, embeddings`,
    `${browser}, ${adapter}, variant "${variant}". Requests of ${embeddings.texts} texts with ${number(embeddings.tokens_per_text)} tokens each, and of one.`,
    table(rows),
    ...(load ? [`Load ${number(load.first_load_ms)} ms.`] : []),
  ].join("\n\n");
}

/** Horizontal bars of decode speed. */
function plot(model) {
  const bars = [
    ["inpage, greedy", model.greedy?.decode_tokens_per_s],
    ["inpage, sampled", model.sampled?.decode_tokens_per_s],
    ...model.peers.map((peer) => [`${peer.peer} (${peer.device})`, peer.decode_tokens_per_s]),
  ].filter(([, value]) => value);
  const [width, left, height, most] = [640, 170, 28, Math.max(...bars.map(([, value]) => value))];
  const rows = bars.map(([label, value], i) => {
    const y = 40 + i * height;
    const length = Math.max(1, (value / most) * (width - left - 70));
    return `<text x="${left - 8}" y="${y + 15}" text-anchor="end">${label}</text>
<rect x="${left}" y="${y}" width="${length.toFixed(1)}" height="20" fill="${label.startsWith("inpage") ? "#0f6b66" : "#b0a794"}"/>
<text x="${(left + length + 6).toFixed(1)}" y="${y + 15}">${number(value)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${50 + bars.length * height}" font-family="sans-serif" font-size="13">
<title>${model.name}: decode speed in tokens per second</title>
<rect width="100%" height="100%" fill="#fff"/>
<text x="10" y="22" font-weight="bold">${model.name}: decode, tokens/s</text>
${rows.join("\n")}
</svg>
`;
}

await main(async (files) => {
  const models = modelsOf(readLines(files));
  const page = readFileSync(PAGE, "utf8");
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Remediable(`${PAGE} has no markers`);
  mkdirSync(PLOTS, { recursive: true });
  for (const model of models.filter(({ greedy }) => greedy))
    writeFileSync(join(PLOTS, plotName(model)), plot(model));
  const measured = models
    .map((model) => {
      if (model.image) return imageSection(model);
      return model.embeddings ? embeddingsSection(model) : section(model);
    })
    .join("\n\n");
  writeFileSync(
    PAGE,
    `${page.slice(0, begin + BEGIN.length)}\n\n${measured}\n\n${page.slice(end)}`,
  );
  say(`docs/performance.md: ${models.length} models`);
  return 0;
});
