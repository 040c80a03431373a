//! The page that measures the visitor's device: its rows, plot and report with the embedded model, runtimes that cannot be loaded, and one
//! that can, in place of the real one.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { startHarness, wasmIsBuilt } from "./harness.mjs";

const skip = !wasmIsBuilt && "skipped: the wasm module is not built";
const CDN = "https://cdn.jsdelivr.net/**";
/** The part of wllama that `www/measure/peers.js` uses; `isEndless` generations end with their signal. */
const fakeWllama = (isEndless) => `export class Wllama {
  async loadModel([file]) { if (file.size < 1000) throw new Error("no model"); }
  async createCompletion({ onData, max_tokens, abortSignal }) {
    for (let i = 0; ${isEndless} || i < max_tokens; i++) {
      await new Promise((resolve) => setTimeout(resolve, 2));
      abortSignal.throwIfAborted();
      globalThis.generated = (globalThis.generated ?? 0) + 1;
      onData({ choices: [{ finish_reason: null }], timings: { prompt_n: 130 } });
    }
  }
  async exit() { globalThis.exits = (globalThis.exits ?? 0) + 1; }
}`;
/** The part of transformers.js that it uses. */
const ENDLESS_TRANSFORMERS = `export const env = {};
export class Tensor {}
export class InterruptableStoppingCriteria { interrupt() { this.interrupted = true; } }
export const AutoModelForCausalLM = {
  async from_pretrained() {
    await (await env.fetch("/measure/index.html")).text();
    return {
      async generate({ streamer, stopping_criteria }) {
        while (!stopping_criteria.interrupted) {
          await new Promise((resolve) => setTimeout(resolve, 2));
          globalThis.generated = (globalThis.generated ?? 0) + 1;
          streamer.put();
        }
      },
      async dispose() { globalThis.exits = (globalThis.exits ?? 0) + 1; },
    };
  },
};`;

/** Answers requests to the CDN with a script. */
const script = (body) => (route) => {
  const headers = { "access-control-allow-origin": "*" };
  return route.fulfill({ contentType: "text/javascript", body, headers });
};

let harness;
before(async () => {
  harness = await startHarness({ mounts: { "/measure/": join(root, "www/measure/") } });
});
after(() => harness?.close());

async function open(answer) {
  const page = await harness.open(undefined, "/measure/?model=embedded");
  await page.route(CDN, answer);
  await page.waitForFunction(() => document.querySelector("#model").value === "embedded");
  return page;
}

const finished = (page) =>
  page.locator("#state", { hasText: /^Done\.$/ }).waitFor({ timeout: 120_000 });
const rows = (page) => page.locator("#rows tr").allInnerTexts();

test("the CPU is measured, a GPU that is none is not, and runtimes that cannot be loaded say so", {
  skip,
}, async () => {
  const page = await open((route) => route.abort());
  for (const box of ["#wllama", "#transformers"]) await page.check(box);
  await page.click("#start");
  await finished(page);
  const [gpu, cpu, ...peers] = await rows(page);
  const report = JSON.parse(await page.locator("#json").textContent());
  const [onGpu, onCpu] = report.results;
  if (onGpu.error) assert.match(gpu, /this browser offers no GPU to pages/);
  assert.match(cpu, /^inpage, CPU\s+\d/);
  assert.ok(onCpu.prefill > 0 && onCpu.decode > 0 && onCpu.loadMs > 0 && onCpu.share > 0);
  assert.equal(onCpu.device, "cpu");
  assert.ok(
    peers.length === 2 && peers.every((text) => /import|fetch|load/i.test(text)),
    `${peers}`,
  );
  assert.equal(await page.locator("#plot rect").count(), onGpu.error ? 1 : 2);
  await page.context().close();
});

test("a runtime from the CDN is measured with the same file, and only if it is ticked", {
  skip,
}, async () => {
  const asked = [];
  const page = await open((route) => {
    asked.push(route.request().url());
    return script(fakeWllama(false))(route);
  });
  for (const box of ["#webgpu", "#cpu"]) await page.uncheck(box);
  await page.click("#start");
  await finished(page);
  assert.deepEqual([asked, await rows(page)], [[], []]);
  await page.check("#wllama");
  await page.click("#start");
  await finished(page);
  assert.equal(asked.length, 1);
  const { results } = JSON.parse(await page.locator("#json").textContent());
  assert.deepEqual(
    results.map(({ runtime, error }) => [runtime, error]),
    [["wllama, CPU", undefined]],
  );
  assert.ok(results[0].decode > 50 && results[0].decode < 600, `${results[0].decode}`);
  await page.context().close();
});

test("a model is named as in the catalog, for every runtime", { skip }, async () => {
  const page = await harness.open(undefined, "/measure/");
  const asked = [];
  await page.context().route("https://huggingface.co/**", (route) => {
    asked.push(route.request().url());
    const headers = { "access-control-allow-origin": "*" };
    route.fulfill({ path: join(root, "www/models/tales.gguf"), headers });
  });
  await page.route(CDN, script(fakeWllama(false)));
  const name = "smollm2-135m-instruct";
  await page.waitForFunction((name) => document.querySelector("#model").value === name, name);
  assert.ok((await page.locator("#models option").count()) > 20);
  await page.uncheck("#webgpu");
  await page.check("#wllama");
  await page.click("#start");
  await finished(page);
  const report = JSON.parse(await page.locator("#json").textContent());
  assert.equal(report.model, name);
  assert.deepEqual(
    report.results.map(({ runtime, error }) => [runtime, error]),
    [
      ["inpage, CPU", undefined],
      ["wllama, CPU", undefined],
    ],
  );
  assert.ok(asked.length >= 2 && asked.every((url) => url.endsWith("-Q8_0.gguf")), `${asked}`);
  await page.context().close();
});

for (const [id, body] of [
  ["wllama", fakeWllama(true)],
  ["transformers", ENDLESS_TRANSFORMERS],
]) {
  test(`Stop ends a measurement of ${id} that runs`, { skip }, async () => {
    const page = await open(script(body));
    for (const box of ["#webgpu", "#cpu"]) await page.uncheck(box);
    await page.check(`#${id}`);
    await page.click("#start");
    await page.waitForFunction(() => globalThis.generated > 10);
    await page.click("#stop");
    await page.locator("#state", { hasText: "Stopped." }).waitFor({ timeout: 10_000 });
    const { generated, exits } = await page.evaluate(() => {
      const { generated, exits } = globalThis;
      return { generated, exits };
    });
    assert.equal(exits, 1);
    assert.deepEqual(await rows(page), []);
    await page.waitForTimeout(50);
    assert.equal(await page.evaluate(() => globalThis.generated), generated);
    await page.context().close();
  });
}
