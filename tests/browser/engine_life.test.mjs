//! The life of an engine: start, failure, recovery and end, with a fake engine behind the real worker host. Every test creates
//! its own engines, all in one page.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startHarness } from "./harness.mjs";

let harness;
let page;
before(async () => {
  harness = await startHarness();
  page = await harness.open();
});
after(() => harness?.close());

test("createEngine resolves when the model is loaded", async () => {
  const loads = await page.evaluate(async () => (await (await startFake()).info()).loads);
  assert.equal(loads, 1);
});

test("a load that fails rejects with the reason", async () => {
  const result = await page.evaluate(() => caught(() => startFake({ fakeLoadError: true })));
  assert.equal(result.className, "InpageError");
  assert.equal(result.code, "model_not_loaded");
  assert.match(result.message, /cannot be loaded/);
});

test("an engine that cannot start rejects with the reason", async () => {
  const result = await page.evaluate(() => caught(() => startFake({ fakeStartError: true })));
  assert.equal(result.code, "internal_error");
  assert.match(result.message, /cannot start/);
});

test("a worker script that cannot be loaded is named with the likely causes", async () => {
  const absent = await page.evaluate(() => caught(() => startFake({ workerUrl: "/absent.mjs" })));
  assert.equal(absent.code, "worker_unavailable");
  const start = `the engine worker's script ${harness.origin}/absent.mjs could not be started`;
  assert.ok(absent.message.startsWith(start), absent.message);
  for (const cause of ["bundler", "workerUrl", "worker-src"]) {
    assert.ok(absent.message.includes(cause), absent.message);
  }
  const wrong = await page.evaluate(() => caught(() => startFake({ workerUrl: "http://[" })));
  assert.equal(wrong.code, "worker_unavailable");
});

test("with `background`, the engine answers while the model loads", async () => {
  const result = await page.evaluate(async () => {
    const engine = await startFake({ background: true, fakeLoadMs: 500 });
    let ready = false;
    engine.ready.then(() => {
      ready = true;
    });
    const { status } = await engine.fetch("/v1/models");
    const early = ready;
    await engine.ready;
    return { status, early, ready, loads: (await engine.info()).loads };
  });
  assert.deepEqual(result, { status: 200, early: false, ready: true, loads: 1 });
});

test("a signal aborts the load", async () => {
  const results = await page.evaluate(async () => [
    await caught(() => startFake({ fakeLoadMs: 60_000, signal: AbortSignal.abort() })),
    await caught(() => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 200);
      return startFake({ fakeLoadMs: 60_000, signal: controller.signal });
    }),
  ]);
  assert.deepEqual(
    results.map(({ name }) => name),
    ["AbortError", "AbortError"],
  );
});

test("a signal that aborts after the load has no effect", async () => {
  const status = await page.evaluate(async () => {
    const controller = new AbortController();
    const engine = await startFake({ signal: controller.signal });
    controller.abort();
    return (await engine.fetch("/v1/models")).status;
  });
  assert.equal(status, 200);
});

for (const bodyTransport of ["transfer", "chunks"]) {
  test(`a panic ends in-flight requests with internal_error (${bodyTransport}); the next request works`, async () => {
    const result = await page.evaluate(async (transport) => {
      const engine = await startFake({ bodyTransport: transport });
      const create = (prompt, stream) =>
        caught(async () => {
          const answer = await engine.completions.create({ model: "fake", prompt, stream });
          let text = answer.choices?.[0].text ?? "";
          if (stream) for await (const chunk of answer) text += chunk.choices[0].text;
          return text;
        });
      const others = [create("count:5000:5", true), create("count:5000:5", false)];
      await until(async () => (await engine.info()).active === 2, "two run");
      const response = engine.fetch("/v1/completions", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "fake", prompt: "panic" }),
      });
      const panicked = await response;
      return {
        status: panicked.status,
        retry: panicked.headers.get("x-should-retry"),
        code: (await panicked.json()).error.code,
        others: (await Promise.all(others)).map(({ code }) => code),
        next: (await create("count:2", true)).value,
        loads: (await engine.info()).loads,
      };
    }, bodyTransport);
    assert.deepEqual(result, {
      status: 500,
      retry: "false",
      code: "internal_error",
      others: ["internal_error", "internal_error"],
      next: "é0 é1 ",
      loads: 1,
    });
  });
}

test("a device that is lost in every attempt ends a stream with device_lost; the next request works", async () => {
  const result = await page.evaluate(async () => {
    const engine = await startFake();
    const openai = client({ fetch: engine.fetch });
    let text = "";
    const lost = await caught(async () => {
      const body = { model: "fake", prompt: "lost-after:9", stream: true };
      for await (const chunk of await openai.completions.create(body))
        text += chunk.choices[0].text;
    });
    const next = await openai.completions.create({ model: "fake", prompt: "count:1" });
    return { text, code: lost.code, next: next.choices[0].text };
  });
  assert.deepEqual(result, { text: "é0 é1 ", code: "device_lost", next: "é0 " });
});

test("reload starts a new worker", async () => {
  const result = await page.evaluate(async () => {
    const engine = await startFake();
    await engine.completions.create({ model: "fake", prompt: "count:3" });
    const before = (await engine.info()).produced;
    await engine.reload();
    const { produced, loads } = await engine.info();
    return { before, produced, loads };
  });
  assert.deepEqual(result, { before: 3, produced: 0, loads: 1 });
});

test("dispose can be called twice and during the load", async () => {
  const ready = await page.evaluate(async () => {
    const engine = await startFake({ background: true, fakeLoadMs: 60_000 });
    const ready = caught(() => engine.ready);
    await Promise.all([engine.dispose(), engine.dispose()]);
    return ready;
  });
  assert.equal(ready.name, "AbortError");
});

test("adapters are replaced in order, and kept by a new worker", async () => {
  const result = await page.evaluate(async () => {
    const adapter = (name, scale) => ({ file: new File(["a"], `${name}.gguf`), scale });
    const engine = await startFake({ lora: [adapter("one")], fakeLoadMs: 50 });
    const names = [(await engine.info()).lora];
    const two = engine.setLora([adapter("two")]);
    await Promise.all([two, engine.setLora([adapter("three"), adapter("four")])]);
    names.push((await engine.info()).lora);
    const unfit = await caught(() => engine.setLora([adapter("five", 666)]));
    const placeless = await caught(() => engine.setLora([{ scale: 2 }]));
    await engine.reload();
    names.push((await engine.info()).lora);
    const setting = caught(() => engine.setLora([]));
    await engine.dispose();
    return {
      names,
      unfit,
      placeless,
      ended: await setting,
      late: await caught(() => engine.setLora([])),
    };
  });
  assert.deepEqual(result.names, [["one"], ["three", "four"], ["three", "four"]]);
  assert.match(result.unfit.message, /does not fit/);
  assert.equal(result.unfit.code, "adapter_not_readable");
  assert.match(result.placeless.message, /^lora\[0\] needs/);
  assert.equal(result.ended.code, "engine_unavailable");
  assert.ok(result.late.code === "engine_unavailable" || result.late.name === "AbortError");
});
