//! The command line of `npm run bench`.

import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { Remediable } from "../process.mjs";
import { hasPage, parsePeer } from "./peers.mjs";

export const USAGE = `npm run bench [-- options]   measures in headless Chromium; defaults are in parentheses
    --model FILE.gguf      the model (the embedded one)
    --shape NAME           random weights instead, in the shape of smollm2-135m, qwen3-0.6b, llama-1b or llama-8b
    --type NAME            tensor type of the random weights (q4_0)
    --projector FILE.gguf  measures images instead of text: their encoding, and the first token after one
    --embeddings MODEL     measures embeddings instead: a Hugging Face folder or a GGUF file
    --device NAME          auto, webgpu or cpu (auto)
    --threads N            most threads of the CPU device, and those of peers on the CPU (all)
    --tokens N             tokens to decode (64)
    --prompt-tokens N      tokens of the prompt (128)
    --rounds N             measurements of each kind, of which the median is printed (3)
    --contexts N,N,...     context lengths to decode after (128,1024,4096; 128,1024 on software adapters)
    --batches N,N,...      sequences to decode together (1,4,8)
    --json                 JSON lines
    --peers FOLDER         a harness for other runtimes, which run afterwards in the same browser
    --peer NAME=MODEL      a runtime (transformers, transformers-cpu, webllm, wllama, llamacpp) and its form of the model; may
                           be repeated. llamacpp is native llama.cpp on the CPU
    --peer-models FOLDER   the folder of these models (FOLDER/../models)
    --dev                  builds the wasm module faster; measured CPU times are then too long`;

const OPTIONS = {
  model: { type: "string" },
  shape: { type: "string" },
  type: { type: "string" },
  projector: { type: "string" },
  embeddings: { type: "string" },
  device: { type: "string", default: "auto" },
  threads: { type: "string" },
  tokens: { type: "string", default: "64" },
  "prompt-tokens": { type: "string", default: "128" },
  rounds: { type: "string", default: "3" },
  contexts: { type: "string" },
  batches: { type: "string", default: "1,4,8" },
  json: { type: "boolean" },
  peers: { type: "string" },
  peer: { type: "string", multiple: true, default: [] },
  "peer-models": { type: "string" },
  dev: { type: "boolean" },
  help: { type: "boolean" },
};

const wrong = (message) => Object.assign(new Remediable(message, USAGE), { exitStatus: 2 });

/** A path relative to the user's working directory: npm runs scripts in the repository's folder. */
export const fromUser = (path) => resolve(process.env.INIT_CWD ?? process.cwd(), path);

/** The kind of measurement: `texts`, `images` or `embeddings`. */
export function kindOf({ projector, embeddings }) {
  if (embeddings !== undefined) return "embeddings";
  return projector === undefined ? "texts" : "images";
}

/** The parsed options. Throws if they are wrong. */
export function parseOptions(args) {
  let values;
  try {
    values = parseArgs({ args, options: OPTIONS, strict: true }).values;
  } catch (error) {
    throw wrong(error.message);
  }
  const number = (name, text) => {
    if (!/^[1-9]\d{0,5}$/.test(text)) throw wrong(`--${name} takes positive numbers, not ${text}`);
    return Number(text);
  };
  for (const name of ["tokens", "prompt-tokens", "rounds", "threads"]) {
    if (values[name] !== undefined) values[name] = number(name, values[name]);
  }
  for (const name of ["contexts", "batches"]) {
    values[name] = values[name]?.split(",").map((text) => number(name, text));
  }
  if (values.model !== undefined && values.shape !== undefined) {
    throw wrong("--model and --shape cannot be combined");
  }
  if (values.type !== undefined && values.shape === undefined) throw wrong("--type needs --shape");
  if (values.projector !== undefined && values.model === undefined) {
    throw wrong("--projector needs --model");
  }
  if (values.embeddings !== undefined && (values.model ?? values.shape) !== undefined) {
    throw wrong("--embeddings names the model alone");
  }
  const peers = values.peer.map((text) => {
    const peer = parsePeer(text);
    if (!peer) throw wrong(`--peer takes NAME=MODEL, not ${text}`);
    const kind = kindOf(values);
    if (!hasPage(peer, kind)) throw wrong(`${kind} are not measured with ${peer.name}`);
    return peer;
  });
  if (peers.length > 0 && values.peers === undefined) throw wrong("--peer needs --peers FOLDER");
  return {
    ...values,
    peers: peers.length > 0 ? { folder: fromUser(values.peers), peers } : undefined,
  };
}
