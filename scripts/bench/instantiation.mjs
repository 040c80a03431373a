#!/usr/bin/env node
/**
 * Measures how long headless Chromium compiles and instantiates the wasm module, from bytes that it has, in a browser of its own each
 * time, as nothing may be cached. Each folder has a module and its glue (`inpage_bg.wasm`, `inpage.js`), as `www/dist/wasm` does;
 * several take turns. Prints a line of JSON each. A browser uses the cores of this process, so for one core:
 *
 *     taskset -c 0 node scripts/bench/instantiation.mjs [--rounds N] [FOLDER ...]
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { launchChromium } from "../chromium.mjs";
import { root } from "../process.mjs";
import { serve } from "../server.mjs";

/** Runs in the page. */
async function instantiate(folder) {
  const { default: start } = await import(`${folder}inpage.js`);
  const bytes = await (await fetch(`${folder}inpage_bg.wasm`)).arrayBuffer();
  // Chromium compiles a response while it reads it, as it does with one from the network.
  const module = new Response(bytes, { headers: { "content-type": "application/wasm" } });
  const begin = performance.now();
  await start({ module_or_path: module });
  return { bytes: bytes.byteLength, instantiate_ms: performance.now() - begin };
}

async function measure(folder) {
  const page = { "/": '<!doctype html><link rel="icon" href="data:,">' };
  const server = await serve({ mounts: { "/wasm/": `${folder}/` }, pages: page });
  const browser = await launchChromium({ webgpu: false });
  try {
    const tab = await browser.newPage();
    await tab.goto(`${server.origin}/`);
    return await tab.evaluate(instantiate, "/wasm/");
  } finally {
    await browser.close();
    await server.close();
  }
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

const { values, positionals } = parseArgs({
  options: { rounds: { type: "string", default: "9" } },
  allowPositionals: true,
});
const folders = positionals.length > 0 ? positionals : [join(root, "www/dist/wasm")];
const times = new Map(folders.map((folder) => [folder, []]));
const bytes = new Map();
for (let round = 0; round < Number(values.rounds); round++) {
  for (const folder of folders) {
    const measured = await measure(folder);
    bytes.set(folder, measured.bytes);
    times.get(folder).push(measured.instantiate_ms);
  }
}
const first_ms = median(times.get(folders[0]));
for (const folder of folders) {
  const instantiate_ms = median(times.get(folder));
  const [least_ms, most_ms] = [Math.min(...times.get(folder)), Math.max(...times.get(folder))];
  const result = { folder, bytes: bytes.get(folder), instantiate_ms, least_ms, most_ms };
  console.log(JSON.stringify({ ...result, ratio_to_first: instantiate_ms / first_ms }));
}
