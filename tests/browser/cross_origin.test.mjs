//! The package on another origin than the page, as on a CDN: its scripts, workers, wasm modules and model come from there.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { launchChromium } from "../../scripts/chromium.mjs";
import { root } from "../../scripts/process.mjs";
import { serve } from "../../scripts/server.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { wasmIsBuilt } from "./harness.mjs";

const skip = !wasmIsBuilt && "skipped: the wasm module is not built";

const pageOf = (cdn) => `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">
<script type="importmap">{ "imports": { "inpage": "${cdn}/www/dist/index.js" } }</script>`;

describe("the package on another origin", { skip }, () => {
  let cdn;
  let browser;
  let sites;
  before(async () => {
    cdn = await serve({
      mounts: { "/www/dist/": join(root, "www/dist/"), "/www/models/": join(root, "www/models/") },
      cors: true,
    });
    const serviceWorker = join(temporaryFolder("inpage-cross-origin-"), "sw.js");
    writeFileSync(serviceWorker, `importScripts("${cdn.origin}/www/dist/sw.js");`);
    const site = (isolated) =>
      serve({ mounts: { "/sw.js": serviceWorker }, pages: { "/": pageOf(cdn.origin) }, isolated });
    sites = { plain: await site(false), isolated: await site(true) };
    browser = await launchChromium();
  });
  after(async () => {
    await browser?.close();
    for (const server of [cdn, sites?.plain, sites?.isolated]) await server?.close();
  });

  const open = async (site) => {
    const page = await (await browser.newContext()).newPage();
    await page.goto(site.origin);
    return page;
  };

  test("an import map is enough: an engine, again after a reload, and an inspection", async () => {
    const page = await open(sites.plain);
    const found = await page.evaluate(async () => {
      const { createEngine, inspectModel } = await import("inpage");
      const { Worker } = globalThis;
      const engine = await createEngine({ device: "cpu" });
      const body = { model: "default", prompt: "Once", max_tokens: 4, temperature: 0 };
      const text = async () => (await engine.completions.create(body)).choices[0].text;
      const first = await text();
      await engine.reload();
      const again = await text();
      const { device, threads } = await engine.info();
      await engine.dispose();
      const { refusal, model } = await inspectModel("embedded");
      const isSameWorker = globalThis.Worker === Worker;
      return { first, again, device, threads, refusal, model, isSameWorker };
    });
    assert.match(found.first, /[a-z]/);
    assert.equal(found.again, found.first);
    assert.deepEqual([found.device, found.threads], ["cpu", 1]);
    assert.deepEqual([found.refusal, found.model.architecture], [null, "llama"]);
    assert.equal(found.isSameWorker, true);
  });

  test("the CPU device has threads in an isolated page", async () => {
    const page = await open(sites.isolated);
    const threads = await page.evaluate(async () => {
      const { createEngine } = await import("inpage");
      const engine = await createEngine({ device: "cpu", threads: 2 });
      await engine.completions.create({ model: "default", prompt: "Once", max_tokens: 4 });
      return (await engine.info()).threads;
    });
    assert.equal(threads, 2);
  });

  test("a service worker of one line answers fetch", async () => {
    const page = await open(sites.plain);
    const models = await page.evaluate(async () => {
      const { createEngine, serveFromPage } = await import("inpage");
      const engine = await createEngine({ device: "cpu" });
      await serveFromPage(engine).ready;
      return (await (await fetch("/v1/models")).json()).data.map(({ id }) => id);
    });
    assert.deepEqual(models, ["tales"]);
  });

  test("a worker script of another origin can be given by its URL", async () => {
    const page = await open(sites.plain);
    const text = await page.evaluate(async (workerUrl) => {
      const { createEngine } = await import("inpage");
      const engine = await createEngine({ device: "cpu", workerUrl });
      const body = { model: "default", prompt: "Once", max_tokens: 4 };
      return (await engine.completions.create(body)).choices[0].text;
    }, `${cdn.origin}/www/dist/worker.js`);
    assert.match(text, /[a-z]/);
  });
});
