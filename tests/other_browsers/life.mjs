//! The tests for browsers other than Chromium: the service worker, aborts, offline visits with a fake engine, and the
//! real engine. Which browser is the caller's concern.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { startServer, wasmIsBuilt } from "../browser/harness.mjs";

/** Ways to fetch, and whether the answer is a stream, whose aborts reach the engine. */
const ABORTS = [
  ["servedFetch", true],
  ["servedFetch", false],
  // Neither browser tells the service worker that a plain `fetch` of a whole response was aborted.
  ["fetch", true],
];

/** Declares the tests for the browser that `launch()` starts; `devices` are those of the real engine. */
export function testLife({ launch, devices }) {
  let server;
  let browser;
  let page;

  before(async () => {
    // Isolated, so that the CPU device has threads where the browser shares memory.
    // A worker of many modules: those that it imports are kept for offline visits, too.
    const fakeWorker = join(root, "tests/browser/fixtures/fake_worker.mjs");
    const mounts = { "/fixtures/fake_worker.mjs": fakeWorker };
    server = await startServer(mounts, { isolated: true });
    browser = await launch();
    page = await openPage();
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });

  async function openPage(origin = server.origin) {
    const opened = await browser.open(`${origin}/`);
    for (let wait = 0; !(await opened.evaluate(() => window.loaded ?? false)); wait++) {
      assert.ok(wait < 200, "the page does not load");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return opened;
  }

  test("ready resolves when plain fetch is answered", async () => {
    const status = await page.evaluate(async () => {
      window.engine = await startFake();
      window.serving = inpage.serveFromPage(engine);
      await serving.ready;
      return (await fetch("/v1/models")).status;
    });
    assert.equal(status, 200);
  });

  for (const [door, stream] of ABORTS) {
    const what = stream ? "a stream" : "a whole response";
    test(`an abort of ${what} through ${door} stops the generation`, async () => {
      browser.messages.length = 0;
      const active = await page.evaluate(
        async ({ door, stream }) => {
          const controller = new AbortController();
          const { signal } = controller;
          const openai = client(door === "fetch" ? {} : { fetch: inpage.servedFetch });
          const body = { model: "fake", prompt: "count:2000:5", stream };
          const running = caught(async () => {
            for await (const _ of await openai.completions.create(body, { signal }));
          });
          await until(async () => (await engine.info()).active === 1, "it runs");
          controller.abort();
          await running;
          await until(async () => (await engine.info()).active === 0, "it stopped", 8000);
          return (await engine.info()).active;
        },
        { door, stream },
      );
      assert.equal(active, 0);
      // For streams, Firefox itself logs "encountered an unexpected error", whatever the worker does.
      assert.deepEqual(
        browser.messages.filter((text) => /rejected/.test(text)),
        [],
      );
    });
  }

  test("other paths, and all paths after stop(), go to the site's server", async () => {
    const statuses = await page.evaluate(async () => {
      const other = (await fetch("/v1/users/me")).status;
      await serving.stop();
      return [other, (await fetch("/v1/models")).status];
    });
    assert.deepEqual(statuses, [404, 404]);
  });

  for (const device of devices) {
    test(`the real engine answers on ${device}, and its adapter has a name`, async (t) => {
      if (!wasmIsBuilt) return t.skip("the wasm module is not built");
      const hasAdapter = () => navigator.gpu?.requestAdapter().then((adapter) => adapter !== null);
      if (device === "webgpu" && !(await page.evaluate(hasAdapter))) {
        return t.skip("this browser finds no adapter on this machine");
      }
      await answers(device);
    });
  }

  test("the package works from another origin", async (t) => {
    if (!wasmIsBuilt) return t.skip("the wasm module is not built");
    const cdn = await startServer({}, { cors: true });
    try {
      await answers("cpu", cdn.origin);
    } finally {
      await cdn.close();
    }
  });

  async function answers(device, origin = server.origin) {
    const module = `${origin}/dist/index.js`;
    const { info, text, shares, processors } = await page.evaluate(
      async ({ device, module }) => {
        const { createEngine } = await import(module);
        const engine = await createEngine({ device, load: { contextTokens: 256 } });
        const body = {
          model: "default",
          prompt: "Once upon a time",
          max_tokens: 4,
          temperature: 0,
        };
        const { choices } = await engine.completions.create(body);
        const info = await engine.info();
        await engine.dispose();
        const shares = crossOriginIsolated && typeof SharedArrayBuffer !== "undefined";
        const processors = navigator.hardwareConcurrency;
        return { info, text: choices[0].text, shares, processors };
      },
      { device, module },
    );
    assert.ok(text.length > 0);
    assert.notEqual(info.adapter, "unnamed adapter");
    assert.ok(info.adapter.length > 0);
    if (info.device === "cpu") assert.equal(info.threads, shares ? Math.min(processors, 8) : 1);
  }

  test("where a frame cannot be isolated, the engine runs in a plain worker", async () => {
    const plain = await startServer();
    try {
      const opened = await openPage(plain.origin);
      const found = await opened.evaluate(async () => {
        const engine = await startFake({ device: "cpu", threads: 2, isolatedFrame: {} });
        const { choices } = await engine.completions.create({ model: "fake", prompt: "count:2" });
        const { isolation, isolationReason } = await engine.info();
        return { text: choices[0].text, isolation, isolationReason, frames: frames.length };
      });
      assert.deepEqual(found, {
        text: "é0 é1 ",
        isolation: "none",
        isolationReason:
          "this browser does not isolate frames: for threads the page must be cross-origin isolated itself",
        frames: 0,
      });
    } finally {
      await plain.close();
    }
  });

  test("after one visit the page, its engine and completions need no server", async () => {
    await page.evaluate(async () => {
      // Not every browser tells a page which worker scripts it has loaded.
      const offline = { files: ["/fixtures/fake_worker.mjs"] };
      window.serving = inpage.serveFromPage(engine, { offline });
      await serving.ready;
      await serving.keptOffline;
    });
    await server.close();
    const offline = await openPage();
    const answer = await offline.evaluate(async () => {
      window.engine = await startFake();
      await inpage.serveFromPage(engine, { offline: true }).ready;
      return (await client().completions.create({ model: "fake", prompt: "count:2" })).choices[0]
        .text;
    });
    assert.equal(answer, "é0 é1 ");
  });
}
