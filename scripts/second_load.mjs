//! `npm run second-load -- [--rounds N] [--model FILE.gguf]`: how long the second load of a model takes in headless
//! Chromium, compared with the first: of the embedded model, and of one of 77 MB with weights of zero or of FILE. Each
//! round begins with an empty profile; the second load is another page of it. Prints JSON. The package must be built.

import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { launchChromium } from "./chromium.mjs";
import { zeroLlama } from "./gguf_header.mjs";
import { main, Remediable, root } from "./process.mjs";
import { serve } from "./server.mjs";
import { serveSparse } from "./sparse_server.mjs";

const SMALL_MODEL = join(root, "tests/parity/models/llama.gguf");
/** 77 MB in Q4_0; the shapes are those of models of 135 million weights. */
const LARGER = { layers: 39, heads: 9, kvHeads: 3, headDim: 64, ffnDim: 1536, type: "Q4_0" };

/** Runs in the page: the time until the model is ready, its parts, and the time of the first token after that. */
async function loadInPage(model) {
  const { createEngine } = await import("/dist/index.js");
  const start = performance.now();
  const engine = await createEngine({ device: "webgpu", model });
  const load_ms = performance.now() - start;
  const asked = performance.now();
  const body = { model: "default", prompt: "One day there was", max_tokens: 1, temperature: 0 };
  await engine.completions.create(body);
  const first_token_ms = performance.now() - asked;
  const { loadMs, adapter, variant, fileBytes } = await engine.info();
  await engine.dispose();
  return { load_ms, first_token_ms, parts: loadMs, adapter, variant, fileBytes };
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const rounded = (value) => Number(value.toPrecision(3));

/** Medians of the same load of several rounds. */
function summary(loads) {
  const of = (value) => rounded(median(loads.map(value)));
  const parts = Object.keys(loads[0].parts);
  return {
    load_ms: of(({ load_ms }) => load_ms),
    first_token_ms: of(({ first_token_ms }) => first_token_ms),
    ...Object.fromEntries(parts.map((part) => [`${part}_ms`, of((load) => load.parts[part])])),
  };
}

async function measure(browser, origin, model, rounds) {
  const [first, second] = [[], []];
  for (let round = 0; round < rounds; round++) {
    const context = await browser.newContext();
    for (const loads of [first, second]) {
      const page = await context.newPage();
      await page.goto(`${origin}/`);
      loads.push(await page.evaluate(loadInPage, model));
      await page.close();
    }
    await context.close();
  }
  const { adapter, variant, fileBytes } = first[0];
  const ratios = first.map(({ load_ms }, round) => second[round].load_ms / load_ms);
  return {
    ...{ file_bytes: fileBytes, adapter, variant, rounds },
    ...{ first: summary(first), second: summary(second) },
    second_to_first: rounded(median(ratios)),
  };
}

await main(async (args) => {
  const options = { rounds: { type: "string", default: "3" }, model: { type: "string" } };
  const { values } = parseArgs({ args, options });
  if (!existsSync(join(root, "www/dist/wasm/inpage_bg.wasm"))) {
    throw new Remediable("the package is not built", "npm run build");
  }
  const mounts = { "/dist/": join(root, "www/dist/"), "/models/": join(root, "www/models/") };
  const given = values.model && resolve(process.env.INIT_CWD ?? process.cwd(), values.model);
  if (given) mounts["/local/model.gguf"] = given;
  const pages = { "/": '<!doctype html><title>inpage</title><link rel="icon" href="data:,">' };
  const server = await serve({ mounts, pages });
  const { header, sizeBytes } = zeroLlama(readFileSync(SMALL_MODEL), LARGER);
  const sparse = await serveSparse({ parts: [{ at: 0, bytes: header }], sizeBytes });
  const browser = await launchChromium();
  try {
    const larger = given ? `${server.origin}/local/model.gguf` : sparse.url;
    for (const [name, model] of Object.entries({ embedded: "embedded", larger })) {
      const measured = await measure(browser, server.origin, model, Number(values.rounds));
      const line = { name, browser: `Chromium ${browser.version()}`, ...measured };
      process.stdout.write(`${JSON.stringify(line)}\n`);
    }
  } finally {
    await browser.close();
    await server.close();
    await sparse.close();
  }
  return 0;
});
