//! `npm run bench`: measures the public package in headless Chromium: loading, first token, prefill, decode, and the
//! CPU time of replaying a decode step. `cargo run --release --example bench` measures natively.

import { statSync } from "node:fs";
import { basename, join } from "node:path";
import { measureEmbeddingsInPage, TEXTS } from "./bench/embeddings_page.mjs";
import { embeddingsPlace, modelFile, projectorFile } from "./bench/model.mjs";
import { fromUser, kindOf, parseOptions, USAGE } from "./bench/options.mjs";
import { measureInPage, replayInPage } from "./bench/page.mjs";
import { measurePeers } from "./bench/peers.mjs";
import { measureImagesInPage, IMAGE_SIDE } from "./bench/images_page.mjs";
import {
  completionLine,
  cosine,
  embeddingsLine,
  imageLine,
  print,
  replayLine,
  rounded,
} from "./bench/report.mjs";
import { build, buildWasm } from "./build.mjs";
import { launchChromium } from "./chromium.mjs";
import { main, Remediable, root, say } from "./process.mjs";
import { serve } from "./server.mjs";
import { provideBrowser } from "./setup/browser.mjs";
import { setUpForBuild } from "./setup.mjs";

const REPLAY_ROUNDS = 9;
const REPLAY_STEPS = 32;
/** Context lengths to decode after. On a software adapter the longest would take minutes to fill. */
const CONTEXTS = [128, 1024, 4096];
const CONTEXTS_EMULATED = CONTEXTS.slice(0, 2);

/**
 * Measures the peers on the same adapter. Prints what they take and the speed of inpage relative to each: `ratiosTo` a line.
 * `tokens` and `promptTokens` are those of a request.
 */
async function printPeers(values, facts, request, ratiosTo) {
  const { folder, peers } = values.peers;
  const lines = measurePeers({
    ...{ folder, peers, ...request, kind: kindOf(values) },
    ...{ threads: values.threads, rounds: values.rounds },
    models: values["peer-models"] ? fromUser(values["peer-models"]) : join(folder, "../models"),
    chromium: await provideBrowser(),
    adapter: facts.software_adapter ? "swiftshader" : "",
  });
  for await (const line of lines) {
    // Fields without a value are left out.
    const whole = JSON.parse(JSON.stringify({ ...line, ...ratiosTo(line) }));
    print(values.json, facts, "peer", whole);
  }
}

function factsOf(values, model, browser, info) {
  const { device, threads, adapter, backend, softwareAdapter, variant } = info;
  const facts = {
    ...{ model, device, threads, adapter, backend, software_adapter: softwareAdapter },
    ...{ variant, release: !values.dev },
    ...{ browser: `Chromium ${browser.version()}`, os: process.platform, arch: process.arch },
  };
  if (!values.json) print(false, facts, "machine", facts);
  return facts;
}

/** Loading, first token, prefill, decode and replay. Resolves with what the peers are compared with. */
async function measureTexts({ values, tools, browser, page, model, url }) {
  const measured = await page.evaluate(measureInPage, {
    url,
    device: values.device,
    threads: values.threads,
    tokens: values.tokens,
    promptTokens: values["prompt-tokens"],
    contexts: values.contexts,
    contextsDefault: CONTEXTS,
    contextsEmulated: CONTEXTS_EMULATED,
    batchSizes: values.batches,
    rounds: values.rounds,
  });
  if (measured.error) throw new Remediable(measured.error);
  const facts = factsOf(values, model, browser, measured.info);
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
  const { repeated, after, batches } = measured;
  print(values.json, facts, "repeated", {
    prompt_tokens: repeated.prompt_tokens,
    first_token_ms: rounded(repeated.first_ms),
    again_first_token_ms: rounded(repeated.again_ms),
    saved_share: rounded(1 - repeated.again_ms / repeated.first_ms),
  });
  for (const sample of after) print(values.json, facts, "context", completionLine([sample]));
  for (const { n, decode_ms, tokens } of batches) {
    const tokens_per_s = rounded((tokens / decode_ms) * 1000);
    print(values.json, facts, "batch", { sequences: n, tokens_per_s });
  }
  print(values.json, facts, "page", {
    longest_task_ms: rounded(Math.max(0, ...measured.long_tasks_ms)),
  });
  // The CPU device records no steps.
  if (facts.device === "webgpu") {
    await buildWasm(tools, { dev: values.dev, replayBench: true });
    const steps = Math.min(REPLAY_STEPS, measured.info.contextTokens);
    const replay = await page.evaluate(replayInPage, { url, steps, rounds: REPLAY_ROUNDS });
    if (replay.error) throw new Remediable(`replay: ${replay.error}`);
    print(values.json, facts, "replay", replayLine(replay.report));
  }
  const greedy = completionLine(measured.samples.greedy);
  return () => {
    const ratiosTo = (line) => {
      const times = (field) => (line[field] ? rounded(greedy[field] / line[field]) : undefined);
      return {
        prefill_ratio: times("prefill_tokens_per_s"),
        decode_ratio: times("decode_tokens_per_s"),
      };
    };
    const request = { tokens: values.tokens, promptTokens: values["prompt-tokens"] };
    return printPeers(values, facts, request, ratiosTo);
  };
}

/** Encoding of images, and the first token after one. Resolves as `measureTexts` does. */
async function measureImages({ values, browser, page, model, url, projectorUrl }) {
  const measured = await page.evaluate(measureImagesInPage, {
    ...{ url, projectorUrl, device: values.device, threads: values.threads },
    ...{ side: IMAGE_SIDE, rounds: values.rounds },
  });
  if (measured.error) throw new Remediable(measured.error);
  const facts = factsOf(values, model, browser, measured.info);
  print(values.json, facts, "load", { first_load_ms: rounded(measured.load_ms) });
  const ours = imageLine(measured.samples);
  const cold_first_token_ms = rounded(measured.cold.first_ms);
  print(values.json, facts, "image", { side: IMAGE_SIDE, ...ours, cold_first_token_ms });
  return () => {
    const ratiosTo = (line) => {
      const times = (field) => (line[field] ? rounded(line[field] / ours[field]) : undefined);
      return {
        image_ratio: times("image_ms"),
        first_token_ratio: times("first_token_ms"),
      };
    };
    return printPeers(values, facts, { tokens: 1, promptTokens: ours.prompt_tokens }, ratiosTo);
  };
}

/** Embeddings of many texts in a request, and of one. Resolves as `measureTexts` does. */
async function measureEmbeddings({ values, browser, page, model, url, isFolder }) {
  const measured = await page.evaluate(measureEmbeddingsInPage, {
    place: isFolder ? { folder: `${url}/` } : { url },
    textsUrl: "/bench-texts.js",
    ...{ device: values.device, threads: values.threads, count: TEXTS, rounds: values.rounds },
  });
  if (measured.error) throw new Remediable(measured.error);
  const facts = factsOf(values, model, browser, measured.info);
  print(values.json, facts, "load", { first_load_ms: rounded(measured.load_ms) });
  const ours = embeddingsLine(measured.samples, TEXTS);
  const tokens_per_text = rounded(measured.tokens / TEXTS);
  print(values.json, facts, "embeddings", { texts: TEXTS, tokens_per_text, ...ours });
  return () => {
    const ratiosTo = ({ vector, texts_per_s, text_ms }) => ({
      vector: undefined,
      cosine: vector && rounded(cosine(vector, measured.vector)),
      texts_ratio: texts_per_s && rounded(ours.texts_per_s / texts_per_s),
      text_ratio: text_ms && rounded(text_ms / ours.text_ms),
    });
    return printPeers(values, facts, { tokens: 1, promptTokens: TEXTS }, ratiosTo);
  };
}

const MEASURES = { texts: measureTexts, images: measureImages, embeddings: measureEmbeddings };

await main(async (args) => {
  const values = parseOptions(args);
  if (values.help) {
    process.stdout.write(`${USAGE}\n`);
    return 0;
  }
  const kind = kindOf(values);
  const file = kind === "embeddings" ? embeddingsPlace(values) : await modelFile(values);
  const isFolder = statSync(file).isDirectory();
  const projector = projectorFile(values);
  const tools = await setUpForBuild();
  await build(tools, { dev: values.dev });

  const model = basename(file);
  const url = `/local/${encodeURIComponent(model)}`;
  const projectorUrl = projector && "/local/projector/projector.gguf";
  const mounts = {
    "/dist/": join(root, "www/dist/"),
    "/dist-bench/": join(root, "www/dist-bench/"),
    "/bench/": join(root, "www/bench/"),
    [`/local/${model}${isFolder ? "/" : ""}`]: isFolder ? `${file}/` : file,
    "/bench-texts.js": join(root, "scripts/bench/peer_pages/bench_texts.js"),
    ...(projector && { [projectorUrl]: projector }),
  };
  const pages = { "/": '<!doctype html><title>inpage</title><link rel="icon" href="data:,">' };
  const server = await serve({ mounts, pages, isolated: true });
  const browser = await launchChromium();
  let comparePeers;
  try {
    const page = await browser.newPage();
    await page.goto(`${server.origin}/`);
    const target = { values, tools, browser, page, model, url, projectorUrl, isFolder };
    comparePeers = await MEASURES[kind](target);
  } finally {
    await browser.close();
    await server.close();
  }
  if (values.peers) await comparePeers();
  else if (kind !== "texts") say("bench: inpage alone, because no --peer is named");
  return 0;
});
