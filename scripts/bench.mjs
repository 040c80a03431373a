//! `npm run bench`: measures the public package in headless Chromium: loading, first token, prefill, decode, and the
//! CPU time of replaying a decode step. `cargo run --release --example bench` measures natively.

import { basename, join } from "node:path";
import { modelFile } from "./bench/model.mjs";
import { fromUser, parseOptions, USAGE } from "./bench/options.mjs";
import { measureInPage, replayInPage } from "./bench/page.mjs";
import { measurePeers } from "./bench/peers.mjs";
import { completionLine, print, replayLine, rounded } from "./bench/report.mjs";
import { build, buildWasm } from "./build.mjs";
import { launchChromium } from "./chromium.mjs";
import { main, Remediable, root } from "./process.mjs";
import { serve } from "./server.mjs";
import { provideBrowser } from "./setup/browser.mjs";
import { setUpForBuild } from "./setup.mjs";

const ROUNDS = 3;
const REPLAY_ROUNDS = 9;
const REPLAY_STEPS = 32;
/** Context lengths to decode after. On a software adapter the longest would take minutes to fill. */
const CONTEXTS = [128, 1024, 4096];
const CONTEXTS_EMULATED = CONTEXTS.slice(0, 2);

/** Measures the peers on the same adapter. Prints their rates and the speed of inpage relative to each. */
async function printPeers(values, { facts, greedy }) {
  const { folder, peers } = values.peers;
  const lines = measurePeers({
    ...{ folder, peers, tokens: values.tokens, promptTokens: values["prompt-tokens"] },
    threads: values.threads,
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
  const values = parseOptions(args);
  if (values.help) {
    process.stdout.write(`${USAGE}\n`);
    return 0;
  }
  const file = await modelFile(values);
  const tools = await setUpForBuild();
  await build(tools, { dev: values.dev });

  const model = basename(file);
  const url = `/local/${encodeURIComponent(model)}`;
  const mounts = {
    "/dist/": join(root, "www/dist/"),
    "/dist-bench/": join(root, "www/dist-bench/"),
    "/bench/": join(root, "www/bench/"),
    [`/local/${model}`]: file,
  };
  const pages = { "/": '<!doctype html><title>inpage</title><link rel="icon" href="data:,">' };
  const server = await serve({ mounts, pages, isolated: true });
  const browser = await launchChromium();
  let ours;
  try {
    const page = await browser.newPage();
    await page.goto(`${server.origin}/`);
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
      rounds: ROUNDS,
    });
    if (measured.error) throw new Remediable(measured.error);
    const { device, threads, adapter, backend, softwareAdapter, variant } = measured.info;
    const facts = {
      ...{ model, device, threads, adapter, backend, software_adapter: softwareAdapter },
      ...{ variant, release: !values.dev },
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
    if (device === "webgpu") {
      await buildWasm(tools, { dev: values.dev, replayBench: true });
      const steps = Math.min(REPLAY_STEPS, measured.info.contextTokens);
      const replay = await page.evaluate(replayInPage, { url, steps, rounds: REPLAY_ROUNDS });
      if (replay.error) throw new Remediable(`replay: ${replay.error}`);
      print(values.json, facts, "replay", replayLine(replay.report));
    }
    ours = { facts, greedy: completionLine(measured.samples.greedy) };
  } finally {
    await browser.close();
    await server.close();
  }
  if (values.peers) await printPeers(values, ours);
  return 0;
});
