//! `inpage inspect`: parses the arguments, inspects the model with the wasm module, prints the report.

import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { KV_FORMATS } from "../dist/generated/types.js";
import "../dist/node/index.js";
import { isCatalogName, withFiles } from "../dist/options/catalog_name.js";
import { resolveModel } from "../dist/options/model.js";
import { openHeads } from "../dist/model_source/head_files.js";
import init, { inspectModel } from "../dist/wasm/inpage.js";
import { openLocal } from "./local_files.mjs";
import { hubOf, remoteModel } from "./model_place.mjs";
import { reportText } from "./report_text.mjs";

export const USAGE = `Usage: inpage inspect MODEL [options]

Reports what a model is, how much GPU memory it needs and whether this version runs it. Reads only the headers
of its files, also over HTTP. MODEL is a name of the catalog (inpage models), or the path or URL of a GGUF file, of
any part of a split one, or of a Hugging Face folder. Of a
projector (mmproj) it reports what becomes of images, and which models it fits. The URL of a folder ends with a slash, or like https://huggingface.co/OWNER/NAME/resolve/main. On the hub:
hf:OWNER/NAME/FILE.gguf or hf:OWNER/NAME, with @REVISION at the end; the environment variables HF_ENDPOINT and
HF_TOKEN are used.

  --context N          longest sequence, in tokens (default: the model's own context, at most 4096)
  --kv-format FORMAT   format of the KV cache: ${KV_FORMATS.join(", ")} (default f16)
  --sequences N        KV cache for N sequences of the whole context
  --pool N             KV cache for N tokens, shared by all sequences (default 4096)
  --quantize TYPE      type that a folder's matrices are converted to: q8_0 (default), q4_0, q4_k, ..., none
  --max-binding BYTES  maxStorageBufferBindingSize of the target device
  --json               print the report as JSON

Exit status: 0 the model runs, 1 it does not, 2 wrong usage or an unreadable file.
`;

const RUNS = 0;
const DOES_NOT_RUN = 1;
const NO_ANSWER = 2;

const OPTIONS = {
  context: { type: "string" },
  "kv-format": { type: "string" },
  sequences: { type: "string" },
  pool: { type: "string" },
  quantize: { type: "string" },
  "max-binding": { type: "string" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
};

/** Runs the command; returns the exit status. */
export async function inspect(args) {
  let request;
  try {
    request = requestOf(args);
  } catch (error) {
    process.stderr.write(`inpage inspect: ${error.message}\n\n${USAGE}`);
    return NO_ANSWER;
  }
  if (request.help) {
    process.stdout.write(USAGE);
    return RUNS;
  }
  let report;
  try {
    report = await reportOn(request.place, request.options);
  } catch (error) {
    const cause = error.cause instanceof Error ? ` (${error.cause.message})` : "";
    process.stderr.write(`inpage inspect: ${error.message}${cause}\n`);
    return NO_ANSWER;
  }
  process.stdout.write(
    request.json ? `${JSON.stringify(report, undefined, 2)}\n` : reportText(report),
  );
  return report.runs ? RUNS : DOES_NOT_RUN;
}

/** @throws Error naming the wrong argument */
function requestOf(args) {
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  if (values.help) return { help: true };
  if (positionals.length !== 1) throw new Error("one file or URL is needed");
  const number = (name) => {
    const text = values[name];
    if (text === undefined) return undefined;
    if (!/^[1-9]\d{0,14}$/.test(text)) {
      throw new Error(`--${name} takes a whole number of at least 1, not ${text}`);
    }
    return Number(text);
  };
  const format = values["kv-format"];
  if (format !== undefined && !KV_FORMATS.includes(format)) {
    throw new Error(`--kv-format is ${KV_FORMATS.join(", ")}, not ${format}`);
  }
  if (values.sequences !== undefined && values.pool !== undefined) {
    throw new Error("--sequences and --pool exclude each other");
  }
  const load = {
    contextTokens: number("context"),
    kvFormat: format,
    kvPoolTokens: number("pool"),
    quantize: values.quantize,
  };
  const options = { load, sequences: number("sequences"), maxBindingBytes: number("max-binding") };
  return { place: positionals[0], options, json: values.json === true };
}

async function reportOn(place, options) {
  const remote = isCatalogName(place) ? (await withFiles(place)).model : remoteModel(place);
  const files = remote
    ? await openHeads(
        resolveModel(remote, hubOf(process.env)).location,
        new AbortController().signal,
      )
    : await openLocal(place);
  try {
    const module = new URL("../dist/wasm/inpage_bg.wasm", import.meta.url);
    await init({ module_or_path: await readFile(module) });
    return await inspectModel(files, options);
  } finally {
    await files.close?.();
  }
}
