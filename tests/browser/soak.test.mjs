//! Many completions with random aborts. After the first ones, memory does not grow. `npm run soak` runs 2,000, on the device that it is
//! given; in the tier, the test is shorter.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startHarness, wasmIsBuilt } from "./harness.mjs";

const COMPLETIONS = Number(process.env.INPAGE_SOAK_COMPLETIONS ?? 160);
const DEVICE = process.env.INPAGE_SOAK_DEVICE ?? "webgpu";
/** After this many completions, caches and pools have their final size. */
const WARM_UP = Math.min(100, COMPLETIONS / 2);
/** Completions between two measurements. */
const ROUND = Math.max(20, COMPLETIONS / 20);
/** The size of a heap after garbage collection varies by this much. */
const HEAP_NOISE_BYTES = 1 << 20;

let harness;
let page;
let heapOfWorker;
before(async () => {
  harness = await startHarness({ args: ["--js-flags=--expose-gc"], wholeBrowser: true });
  page = await harness.open();
  await page.evaluate(async (device) => {
    window.engine = await inpage.createEngine({
      device,
      workerUrl: "/fixtures/measured_worker.mjs",
    });
    const channel = new BroadcastChannel("memory");
    window.workerMemory = () =>
      new Promise((resolve) => {
        channel.onmessage = ({ data }) => data.report && resolve(data.report);
        channel.postMessage({ question: 1 });
      });
    let seed = 1;
    // Park and Miller's generator, so that aborts are the same in every run.
    const random = () => {
      seed = (seed * 48271) % 2147483647;
      return seed / 2147483647;
    };
    const one = async (index) => {
      const controller = new AbortController();
      const body = {
        model: "default",
        prompt: "Once upon a time ".repeat(1 + Math.floor(4 * random())),
        max_tokens: 1 + Math.floor(10 * random()),
        n: 1 + Math.floor(2 * random()),
        stream: random() < 0.6,
        temperature: random(),
        ignore_eos: true,
      };
      if (random() < 0.15) body.response_format = { type: "json_object" };
      const [how, delay_ms, after] = [random(), 150 * random(), Math.floor(6 * random())];
      const aborts = index % 3 === 0;
      if (aborts && how < 0.5) setTimeout(() => controller.abort(), delay_ms);
      try {
        const answer = await engine.completions.create(body, { signal: controller.signal });
        if (!body.stream) return "whole";
        let chunks = 0;
        for await (const _ of answer) if (aborts && how >= 0.5 && chunks++ === after) break;
        return "streamed";
      } catch (error) {
        if (error.name === "AbortError") return "aborted";
        throw error;
      }
    };
    /** Runs completions `from` to `to`, three at a time. Counts how they end. */
    window.completions = async (from, to) => {
      const counts = {};
      let next = from;
      const work = async () => {
        while (next < to) {
          const end = await one(next++);
          counts[end] = (counts[end] ?? 0) + 1;
        }
      };
      await Promise.all([work(), work(), work()]);
      await until(async () => (await engine.info()).activeGenerations === 0, "all have ended");
      return counts;
    };
  }, DEVICE);
  heapOfWorker = await workerHeap(harness.browser);
});
after(() => harness?.close());

/** A function that returns the size of the engine worker's JavaScript heap. */
async function workerHeap(browser) {
  const session = await browser.newBrowserCDPSession();
  const { targetInfos } = await session.send("Target.getTargets", { filter: [{}] });
  const worker = targetInfos.find(({ type, url }) => type === "worker" && url.includes("measured"));
  const { sessionId } = await session.send("Target.attachToTarget", {
    targetId: worker.targetId,
    flatten: false,
  });
  let id = 0;
  return () =>
    new Promise((resolve) => {
      const asked = ++id;
      const take = ({ sessionId: from, message }) => {
        const answer = JSON.parse(message);
        if (from !== sessionId || answer.id !== asked) return;
        session.off("Target.receivedMessageFromTarget", take);
        resolve(answer.result.usedSize);
      };
      session.on("Target.receivedMessageFromTarget", take);
      const message = JSON.stringify({ id: asked, method: "Runtime.getHeapUsage" });
      session.send("Target.sendMessageToTarget", { sessionId, message });
    });
}

async function measure() {
  const { wasmBytes, buffers, bufferBytes } = await page.evaluate(() => workerMemory());
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize: pageHeapBytes } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return { wasmBytes, buffers, bufferBytes, pageHeapBytes, workerHeapBytes: await heapOfWorker() };
}

test(`${COMPLETIONS} completions (${DEVICE}) with random aborts do not make memory grow`, {
  skip: !wasmIsBuilt && "the wasm module is not built",
  timeout: 60 * 60_000,
}, async (context) => {
  const counts = await page.evaluate((to) => completions(0, to), WARM_UP);
  const first = await measure();
  let last = first;
  for (let from = WARM_UP; from < COMPLETIONS; from += ROUND) {
    const to = Math.min(from + ROUND, COMPLETIONS);
    const more = await page.evaluate(([from, to]) => completions(from, to), [from, to]);
    for (const [end, count] of Object.entries(more)) counts[end] = (counts[end] ?? 0) + count;
    last = await measure();
    context.diagnostic(`${to}: ${JSON.stringify(last)}`);
  }
  context.diagnostic(`after ${WARM_UP}: ${JSON.stringify(first)}; ${JSON.stringify(counts)}`);
  assert.ok(counts.whole > 0 && counts.streamed > 0 && counts.aborted > 0);
  assert.equal(last.wasmBytes, first.wasmBytes, "wasm memory");
  assert.ok(last.buffers <= first.buffers, `GPU buffers: ${first.buffers}, then ${last.buffers}`);
  assert.ok(last.bufferBytes <= first.bufferBytes, "bytes of GPU buffers");
  for (const heap of ["pageHeapBytes", "workerHeapBytes"]) {
    assert.ok(
      last[heap] <= first[heap] + HEAP_NOISE_BYTES,
      `${heap}: ${first[heap]}, then ${last[heap]}`,
    );
  }
});
