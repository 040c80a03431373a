//! Workers that end without a word, hang, or wait for a GPU that does nothing: they are replaced, and their requests continue. A
//! fake engine runs behind the real worker host. The limits are shortened; `heartbeat.test.mjs` is about the real ones.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startHarness } from "./harness.mjs";

let harness;
before(async () => {
  harness = await startHarness();
});
after(() => harness?.close());

/** A tab with shortened limits, and with functions for the tests. */
async function open(context, path) {
  const page = await harness.open(context, path);
  await page.evaluate(async () => {
    // The modules that the package's file is bundled of: their limits can be changed.
    const inpage = await import("/dist/exports.js");
    const { HEARTBEAT } = await import("/dist/thread/heartbeat.js");
    window.inpage = inpage;
    window.startFake = (options) =>
      inpage.createEngine({
        workerUrl: "/fixtures/fake_worker.mjs",
        model: { file: new Blob(["abc"]), id: "fake" },
        shared: false,
        ...options,
      });
    HEARTBEAT.beatMs = 50;
    // 4 s: on a busy machine a healthy worker may not get a turn for a while.
    HEARTBEAT.maxSilentBeats = { idle: 80, requests: 80, load: 200 };
    window.HEARTBEAT = HEARTBEAT;
    window.create = (engine, prompt, stream) =>
      caught(async () => {
        const answer = await engine.completions.create({ model: "fake", prompt, stream });
        let text = answer.choices?.[0].text ?? "";
        if (stream) for await (const chunk of answer) text += chunk.choices[0].text;
        return text;
      });
    window.closeWorkers = () => new BroadcastChannel("fake-faults").postMessage("close");
    window.throughServiceWorker = async (prompt, stream) => {
      const response = await fetch("/v1/completions", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "fake", prompt, stream }),
      });
      return response.text();
    };
  });
  return page;
}

/** Runs `work` in a new page with its own storage. */
async function inPage(work, argument) {
  const page = await open();
  try {
    return await page.evaluate(work, argument);
  } finally {
    await page.context().close();
  }
}

const words = (count) => Array.from({ length: count }, (_, index) => `é${index} `).join("");

describe("a worker is replaced, and its requests continue", { concurrency: 6 }, () => {
  for (const [what, fault] of [
    ["that ends", "close"],
    ["that is blocked", "spin"],
    ["whose GPU does nothing", "stuck"],
  ]) {
    test(`one ${what}`, async () => {
      const result = await inPage(async (fault) => {
        const engines = await Promise.all([startFake(), startFake({ bodyTransport: "chunks" })]);
        return Promise.all(
          engines.flatMap((engine, index) => [
            create(engine, `${fault}:9:5:1:${index}`, true),
            create(engine, "count:5:1000", false),
          ]),
        );
      }, fault);
      const both = [{ value: words(9) }, { value: words(5) }];
      assert.deepEqual(result, [...both, ...both]);
    });
  }

  test("one that hangs in each run is given up after three, and the next request works", async () => {
    const result = await inPage(async () => {
      const engine = await startFake();
      return [await create(engine, "spin:9:5:3", false), await create(engine, "count:2")];
    });
    assert.equal(result[0].code, "internal_error");
    assert.match(
      result[0].message,
      /the engine worker has not answered for 4 s\. This happened 3 times/,
    );
    assert.deepEqual(result[1], { value: words(2) });
  });

  test("one that ends while it is idle, by the next request, within the limit of idle workers", async () => {
    const page = await open();
    const first = await page.evaluate(async () => {
      // Beyond the time that a test may take.
      HEARTBEAT.maxSilentBeats.requests = 1e6;
      window.engine = await startFake();
      const first = await create(engine, "count:2");
      // 40 beats: until the worker has said that it is idle. One that ends before is not noticed within this limit.
      await new Promise((resolve) => setTimeout(resolve, 2000));
      return first;
    });
    const [worker] = page.workers();
    const closed = worker.waitForEvent("close");
    await page.evaluate(() => closeWorkers());
    await closed;
    const later = await page.evaluate(async () => [
      await create(engine, "count:3"),
      await engine.info(),
    ]);
    await page.context().close();
    assert.deepEqual([first, later[0]], [{ value: words(2) }, { value: words(3) }]);
    assert.equal(later[1].produced, 3, "it is another worker");
  });

  test("one that ends during its load: the load fails, and is tried again", async () => {
    const result = await inPage(async () => {
      const letGo = await new Promise((held) => {
        void navigator.locks.request("fake-load:fake", () => new Promise(held));
      });
      const engine = await startFake({ background: true });
      await until(async () => (await engine.info()).loads === 0, "its engine is created");
      closeWorkers();
      const failed = await caught(() => engine.ready);
      letGo();
      await engine.reload();
      return [failed, await create(engine, "count:2")];
    });
    assert.equal(result[0].code, "internal_error");
    assert.match(result[0].message, /has not answered for 10 s/);
    assert.deepEqual(result[1], { value: words(2) });
  });

  test("one behind the service worker", async () => {
    const result = await inPage(async () => {
      await inpage.serveFromPage(await startFake()).ready;
      return [
        await throughServiceWorker("spin:9:5:1", true),
        await throughServiceWorker("close:8:5:1", false),
      ];
    });
    assert.equal(result[0].match(/é\d+ /g).join(""), words(9));
    assert.match(result[0], /data: \[DONE\]\n\n$/);
    assert.equal(JSON.parse(result[1]).choices[0].text, words(8));
  });

  test("one behind the service worker, which is patient while the page is", async () => {
    const result = await inPage(async () => {
      // 25 s: the service worker gives tabs that are frozen 20 s.
      HEARTBEAT.maxSilentBeats.requests = 500;
      await inpage.serveFromPage(await startFake()).ready;
      return throughServiceWorker("spin:9:5:1", false);
    });
    assert.equal(JSON.parse(result).choices[0].text, words(9));
  });

  test("one in another tab that shares it", async () => {
    const owner = await open();
    const context = owner.context();
    try {
      const start = (tab) =>
        tab.evaluate(async () => {
          window.engine = await startFake({
            model: { url: "/models/tales.gguf", id: "fake" },
            shared: true,
          });
        });
      await start(owner);
      const other = await open(context);
      await start(other);
      assert.equal(other.workers().length, 0, "the engine runs in the first tab");
      const [streamed, whole] = await Promise.all([
        other.evaluate(() => create(engine, "spin:9:5:1", true)),
        other.evaluate(() => create(engine, "count:6:1000", false)),
      ]);
      assert.deepEqual([streamed, whole], [{ value: words(9) }, { value: words(6) }]);
    } finally {
      await context.close();
    }
  });
});

describe("a worker is kept", { concurrency: 6 }, () => {
  const once = (count) => ({ loads: 1, produced: count });
  const state = ({ loads, produced }) => ({ loads, produced });

  test("while a step takes longer than an idle worker may be silent", async () => {
    const result = await inPage(async () => {
      HEARTBEAT.maxSilentBeats = { idle: 40, requests: 400, load: 400 };
      const engine = await startFake();
      return [await create(engine, "block:2500:0"), await engine.info()];
    });
    assert.equal(result[0].code, undefined);
    assert.ok(result[1].produced > 0, "the same worker");
  });

  test("while a stream is not read", async () => {
    const [text, info] = await inPage(async () => {
      const engine = await startFake();
      const stream = await engine.completions.create({
        ...{ model: "fake", prompt: "count:200:0", stream: true },
      });
      const chunks = stream[Symbol.asyncIterator]();
      await chunks.next();
      await new Promise((resolve) => setTimeout(resolve, 6000));
      let text = "é0 ";
      for (;;) {
        const { done, value } = await chunks.next();
        if (done) return [text, await engine.info()];
        text += value.choices[0].text;
      }
    });
    assert.equal(text, words(200));
    assert.deepEqual(state(info), once(200));
  });

  test("while a whole answer takes longer than the limit", async () => {
    const [answer, info] = await inPage(async () => {
      const engine = await startFake();
      return [await create(engine, "count:3:2500", false), await engine.info()];
    });
    assert.deepEqual(answer, { value: words(3) });
    assert.deepEqual(state(info), once(3));
  });

  test("while its load waits for the page", async () => {
    const statuses = await inPage(async () => {
      HEARTBEAT.maxSilentBeats.load = 40;
      const letGo = await new Promise((held) => {
        void navigator.locks.request("fake-load:fake", () => new Promise(held));
      });
      const engine = await startFake({ background: true });
      await new Promise((resolve) => setTimeout(resolve, 5000));
      letGo();
      await engine.ready;
      return (await engine.info()).loads;
    });
    assert.equal(statuses, 1);
  });
});
