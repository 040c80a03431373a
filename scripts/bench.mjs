//! `npm run bench`: what a page gets in headless Chromium, through the public package: loading, first token, prefill
//! and decode; and what replaying a decode step costs the CPU there. Rust's own are `cargo run --release --example bench`.

import { existsSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { build } from "./build.mjs";
import { launchChromium } from "./chromium.mjs";
import { measurePeers, parsePeer } from "./peers.mjs";
import { main, Remediable, root } from "./process.mjs";
import { serve } from "./server.mjs";
import { provideBrowser } from "./setup/browser.mjs";
import { setUpForBuild } from "./setup.mjs";

const USAGE = `npm run bench [-- options]   measures in headless Chromium
    --model FILE.gguf      the embedded model when left out
    --tokens N             tokens to decode (64)
    --prompt-tokens N      tokens of the prompt (128)
    --json                 JSON lines
    --peers FOLDER         the harness of other runtimes, run afterwards in the same browser
    --peer NAME=MODEL      one of them (transformers, webllm, wllama) and its form of the model; may be repeated
    --peer-models FOLDER   where these models lie (FOLDER/../models)
    --dev                  builds the wasm module quicker; what the CPU does is then measured too slow`;

const OPTIONS = {
  model: { type: "string" },
  tokens: { type: "string", default: "64" },
  "prompt-tokens": { type: "string", default: "128" },
  json: { type: "boolean" },
  peers: { type: "string" },
  peer: { type: "string", multiple: true, default: [] },
  "peer-models": { type: "string" },
  dev: { type: "boolean" },
  help: { type: "boolean" },
};

const EMBEDDED_MODEL = "www/models/tales.gguf";
const ROUNDS = 3;
const REPLAY_ROUNDS = 9;
const REPLAY_STEPS = 32;
/** What replaying may cost a decode step in Chromium, and how many dispatches one may have. */
const MAX_REPLAY_US_PER_DISPATCH = 1.5;
const MAX_DISPATCHES_PER_LAYER = 8;

const wrong = (message) => Object.assign(new Remediable(message, USAGE), { exitStatus: 2 });

function parse(args) {
  let values;
  try {
    values = parseArgs({ args, options: OPTIONS, strict: true }).values;
  } catch (error) {
    throw wrong(error.message);
  }
  for (const name of ["tokens", "prompt-tokens"]) {
    if (!/^[1-9]\d{0,5}$/.test(values[name])) throw wrong(`--${name} takes a number from 1 on`);
    values[name] = Number(values[name]);
  }
  const peers = values.peer.map((text) => {
    const peer = parsePeer(text);
    if (!peer) throw wrong(`--peer takes NAME=MODEL, not ${text}`);
    return peer;
  });
  if (peers.length > 0 && values.peers === undefined) throw wrong("--peer needs --peers FOLDER");
  return {
    ...values,
    peers: peers.length > 0 ? { folder: fromUser(values.peers), peers } : undefined,
  };
}

/** A path as the user means it: npm runs scripts in the repository's folder; INIT_CWD is where the user stands. */
const fromUser = (path) => resolve(process.env.INIT_CWD ?? process.cwd(), path);

/** The model's file, checked before anything is built. */
function modelFile(name) {
  if (name === undefined) {
    const embedded = resolve(root, EMBEDDED_MODEL);
    if (existsSync(embedded)) return embedded;
    throw new Remediable(
      `the embedded model ${EMBEDDED_MODEL} is missing`,
      "Name a model with --model FILE.gguf.",
    );
  }
  // npm runs scripts in the repository's folder; INIT_CWD is where the user stands.
  const file = [process.env.INIT_CWD, process.cwd()]
    .filter(Boolean)
    .map((folder) => resolve(folder, name))
    .find((path) => existsSync(path) && statSync(path).isFile());
  if (!file) throw new Remediable(`there is no model file ${name}`, "--model takes a GGUF file.");
  return file;
}

/** Runs in the page. Resolves with raw times in ms, or `{ error }`. */
async function measureInPage({ url, tokens, promptTokens, rounds }) {
  let engine;
  // Tasks of the page's own thread that would drop frames: the engine lives in a worker.
  const long_tasks_ms = [];
  const observer = new PerformanceObserver((list) => {
    long_tasks_ms.push(...list.getEntries().map(({ duration }) => duration));
  });
  observer.observe({ type: "longtask" });
  try {
    const { createEngine } = await import("/dist/index.js");
    const timed = async (work) => {
      const start = performance.now();
      const value = await work();
      return [performance.now() - start, value];
    };
    const load = () => timed(() => createEngine({ model: { url } }));
    let info;
    const loads = [];
    // The first one downloads and compiles, the second one finds the file stored.
    for (let i = 0; i < 2; i++) {
      await engine?.dispose();
      let whole_ms;
      [whole_ms, engine] = await load();
      const answer = () =>
        engine.completions.create({ model: "default", prompt: "One", max_tokens: 1 });
      const [first_token_ms] = await timed(answer);
      info = await engine.info();
      loads.push({ whole_ms, first_token_ms, ...info.load_ms });
    }
    const decoded = Math.min(tokens, Math.floor(info.context_tokens / 2));
    const prompted = Math.min(promptTokens, info.context_tokens - decoded);

    const randomIds = (length) =>
      Array.from({ length }, () => Math.floor(Math.random() * info.vocab_size));
    const complete = async (fields) => {
      const body = {
        // Another prompt each time: nothing computed before is of use.
        ...{ model: "default", prompt: randomIds(prompted), max_tokens: decoded },
        ...{ ignore_eos: true, seed: 1 },
        ...{ stream: true, stream_options: { include_usage: true }, ...fields },
      };
      const asked = performance.now();
      let first;
      let last;
      let usage;
      for await (const chunk of await engine.completions.create(body)) {
        usage = chunk.usage ?? usage;
        if (chunk.choices.length === 0) continue;
        last = performance.now();
        first ??= last;
      }
      if (first === undefined) throw new Error("a completion without any text cannot be timed");
      // The first token ends the prefill; the others are decoded.
      return { first_ms: first - asked, decode_ms: last - first, usage };
    };
    const samples = {};
    for (const [name, temperature] of Object.entries({ greedy: 0, sampled: 1 })) {
      await complete({ temperature });
      samples[name] = [];
      for (let i = 0; i < rounds; i++) samples[name].push(await complete({ temperature }));
    }
    // A long prompt, and another that differs in its last tokens only.
    const long = randomIds(Math.min(1000, info.context_tokens - 16));
    const first = async (prompt) => (await complete({ prompt, max_tokens: 1 })).first_ms;
    const repeated = {
      prompt_tokens: long.length,
      first_ms: await first(long),
      again_ms: await first([...long.slice(0, -4), ...randomIds(4)]),
    };
    const batches = [];
    for (const n of [1, 4, 8]) {
      await complete({ n, temperature: 1, max_tokens: 2 });
      const { decode_ms, usage } = await complete({ n, temperature: 1 });
      batches.push({ n, decode_ms, tokens: usage.completion_tokens });
    }
    return { loads, info, samples, repeated, batches, long_tasks_ms };
  } catch (error) {
    return { error: error?.message ?? String(error) };
  } finally {
    await engine?.dispose();
  }
}

/** Runs in the page; resolves with the module's report, or `{ error }`. */
function replayInPage({ url, steps, rounds }) {
  return new Promise((resolve) => {
    const worker = new Worker("/bench/replay_worker.js", { type: "module" });
    worker.onmessage = ({ data }) => {
      worker.terminate();
      resolve(data);
    };
    worker.onerror = (event) => {
      worker.terminate();
      resolve({ error: event.message || "the worker's script could not be loaded" });
    };
    worker.postMessage({ url, steps, rounds });
  });
}

const rounded = (value) => Math.round(value * 1000) / 1000;

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}

function completionLine(samples) {
  const { usage } = samples[0];
  const { prompt_tokens, completion_tokens } = usage;
  const first_ms = median(samples.map((sample) => sample.first_ms));
  const decode_ms = median(samples.map((sample) => sample.decode_ms));
  const decoded = completion_tokens - 1;
  return {
    prompt_tokens,
    completion_tokens,
    first_token_ms: rounded(first_ms),
    prefill_tokens_per_s: rounded((prompt_tokens / first_ms) * 1000),
    decode_tokens_per_s: decoded > 0 ? rounded((decoded / decode_ms) * 1000) : null,
    decode_ms_per_token: decoded > 0 ? rounded(decode_ms / decoded) : null,
  };
}

function replayLine({ round_ms, steps, dispatches_per_step, layers }) {
  // The first round grows what later ones find grown.
  const perDispatch = round_ms.slice(1).map((ms) => (ms * 1000) / (steps * dispatches_per_step));
  const us_per_dispatch = median(perDispatch);
  const dispatches_per_layer = dispatches_per_step / layers;
  return {
    us_per_dispatch: rounded(us_per_dispatch),
    least_us_per_dispatch: rounded(Math.min(...perDispatch)),
    max_us_per_dispatch: MAX_REPLAY_US_PER_DISPATCH,
    dispatches_per_step,
    layers,
    dispatches_per_layer: rounded(dispatches_per_layer),
    max_dispatches_per_layer: MAX_DISPATCHES_PER_LAYER,
    within_limits:
      us_per_dispatch <= MAX_REPLAY_US_PER_DISPATCH &&
      dispatches_per_layer <= MAX_DISPATCHES_PER_LAYER,
  };
}

function print(json, facts, name, values) {
  if (json) {
    process.stdout.write(`${JSON.stringify({ bench: "chromium", name, ...values, ...facts })}\n`);
    return;
  }
  const pairs = Object.entries(values).map(([key, value]) => `${key}=${value}`);
  process.stdout.write(`${name.padEnd(8)} ${pairs.join("  ")}\n`);
}

/** The peers on the same adapter, and how many times as fast ours is. */
async function printPeers(values, { facts, greedy }) {
  const { folder, peers } = values.peers;
  const lines = measurePeers({
    ...{ folder, peers, tokens: values.tokens, promptTokens: values["prompt-tokens"] },
    models: values["peer-models"] ? fromUser(values["peer-models"]) : join(folder, "../models"),
    chromium: await provideBrowser(),
    adapter: facts.software_adapter ? "swiftshader" : "",
  });
  for await (const line of lines) {
    const times = (field) => (line[field] ? rounded(greedy[field] / line[field]) : undefined);
    const ratios = {
      prefill_ratio: times("prefill_tokens_per_s"),
      decode_ratio: times("decode_tokens_per_s"),
    };
    print(values.json, facts, "peer", JSON.parse(JSON.stringify({ ...line, ...ratios })));
  }
}

await main(async (args) => {
  const values = parse(args);
  if (values.help) {
    process.stdout.write(`${USAGE}\n`);
    return 0;
  }
  const file = modelFile(values.model);
  await build(await setUpForBuild(), { dev: values.dev });

  const model = basename(file);
  const url = `/local/${encodeURIComponent(model)}`;
  const mounts = {
    "/dist/": join(root, "www/dist/"),
    "/bench/": join(root, "www/bench/"),
    [`/local/${model}`]: file,
  };
  const pages = { "/": '<!doctype html><title>inpage</title><link rel="icon" href="data:,">' };
  const server = await serve({ mounts, pages });
  const browser = await launchChromium();
  let ours;
  try {
    const page = await browser.newPage();
    await page.goto(`${server.origin}/`);
    const measured = await page.evaluate(measureInPage, {
      url,
      tokens: values.tokens,
      promptTokens: values["prompt-tokens"],
      rounds: ROUNDS,
    });
    if (measured.error) throw new Remediable(measured.error);
    const { adapter, backend, software_adapter, variant } = measured.info;
    const facts = {
      ...{ model, adapter, backend, software_adapter, variant, release: !values.dev },
      ...{ browser: `Chromium ${browser.version()}`, os: process.platform, arch: process.arch },
    };
    if (!values.json) print(false, facts, "machine", facts);
    const [first, second] = measured.loads;
    print(values.json, facts, "load", {
      first_load_ms: rounded(first.whole_ms),
      second_load_ms: rounded(second.whole_ms),
    });
    for (const [name, times] of Object.entries({ first, second })) {
      const parts = Object.entries(times).map(([part, ms]) => [part, rounded(ms)]);
      print(values.json, facts, "load_parts", { load: name, ...Object.fromEntries(parts) });
    }
    for (const [name, samples] of Object.entries(measured.samples)) {
      print(values.json, facts, name, completionLine(samples));
    }
    const { repeated, batches } = measured;
    print(values.json, facts, "repeated", {
      prompt_tokens: repeated.prompt_tokens,
      first_token_ms: rounded(repeated.first_ms),
      again_first_token_ms: rounded(repeated.again_ms),
      saved_share: rounded(1 - repeated.again_ms / repeated.first_ms),
    });
    for (const { n, decode_ms, tokens } of batches) {
      const tokens_per_s = rounded((tokens / decode_ms) * 1000);
      print(values.json, facts, "batch", { sequences: n, tokens_per_s });
    }
    print(values.json, facts, "page", {
      longest_task_ms: rounded(Math.max(0, ...measured.long_tasks_ms)),
    });
    const steps = Math.min(REPLAY_STEPS, measured.info.context_tokens);
    const replay = await page.evaluate(replayInPage, { url, steps, rounds: REPLAY_ROUNDS });
    if (replay.error) throw new Remediable(`replay: ${replay.error}`);
    print(values.json, facts, "replay", replayLine(replay.report));
    ours = { facts, greedy: completionLine(measured.samples.greedy) };
  } finally {
    await browser.close();
    await server.close();
  }
  if (values.peers) await printPeers(values, ours);
  return 0;
});
