//! The service worker door, with a fake engine behind the real worker host: the real `openai` SDK and plain `fetch`,
//! first loads, forced reloads, other tabs and closed tabs.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { startHarness } from "./harness.mjs";

let harness;
let context;
let page;

before(async () => {
  harness = await startHarness();
});
after(() => harness?.close());
beforeEach(async () => {
  context = await harness.browser.newContext();
  page = await harness.open(context);
});
afterEach(() => context.close());

/** Starts an engine in `tab` and serves it. */
const serve = (tab = page, options = {}) =>
  tab.evaluate(async (options) => {
    window.engine = await startFake(options);
    window.serving = inpage.serveFromPage(engine);
    await serving.ready;
  }, options);

/** In the page: reads a streamed completion to its end, or to its error. */
const readStream = (tab, prompt) =>
  tab.evaluate(
    (prompt) =>
      caught(async () => {
        let text = "";
        const stream = await client({ maxRetries: 0 }).completions.create({
          model: "fake",
          prompt,
          stream: true,
        });
        window.streaming = true;
        for await (const chunk of stream) text += chunk.choices[0].text;
        return text;
      }),
    prompt,
  );

describe("on the first load", () => {
  test("ready resolves when plain fetch is answered", async () => {
    await serve();
    const result = await page.evaluate(async () => {
      const response = await fetch("/v1/models");
      return {
        status: response.status,
        type: response.headers.get("content-type"),
        id: (await response.json()).data[0].id,
      };
    });
    assert.deepEqual(result, { status: 200, type: "application/json; charset=utf-8", id: "fake" });
  });

  test("requests for other paths and hosts go to the network", async () => {
    await serve();
    const result = await page.evaluate(async () => ({
      asset: (await (await fetch("/plain")).text()).slice(0, 15),
      beside: (await fetch("/v1x/models")).status,
      foreign: await caught(() => fetch("https://example.invalid/v1/completions")),
    }));
    assert.equal(result.asset, "<!doctype html>");
    assert.equal(result.beside, 404);
    assert.equal(result.foreign.name, "TypeError");
  });

  test("another origin is answered when it is configured", async () => {
    const id = await page.evaluate(async () => {
      window.engine = await startFake();
      const origins = ["https://api.example.invalid"];
      await inpage.serveFromPage(engine, { origins }).ready;
      return (await (await fetch("https://api.example.invalid/v1/models")).json()).data[0].id;
    });
    assert.equal(id, "fake");
  });

  test("a missing worker script rejects ready with a reason", async () => {
    const result = await page.evaluate(async () => {
      window.engine = await startFake();
      const serving = inpage.serveFromPage(engine, { serviceWorkerUrl: "/absent.js" });
      return caught(() => serving.ready);
    });
    assert.equal(result.code, "service_worker_unavailable");
  });
});

describe("the openai SDK", () => {
  beforeEach(() => serve());

  test("gets plain and streamed completions and the models", async () => {
    const result = await page.evaluate(async () => {
      const openai = client();
      const plain = await openai.completions.create({ model: "fake", prompt: "count:30:1" });
      let streamed = "";
      const stream = await openai.completions.create({
        model: "fake",
        prompt: "count:30:1",
        stream: true,
      });
      for await (const chunk of stream) streamed += chunk.choices[0].text;
      const models = [];
      for await (const model of openai.models.list()) models.push(model.id);
      return {
        same: plain.choices[0].text === streamed,
        length: streamed.split(" ").length,
        models,
      };
    });
    assert.deepEqual(result, { same: true, length: 31, models: ["fake"] });
  });

  test("gets errors as its own classes, with code and param", async () => {
    const results = await page.evaluate(async () => {
      const create = (body) =>
        caught(() => client().completions.create({ model: "fake", ...body }));
      return [
        await create({ prompt: "count:1", temperature: 3 }),
        await create({ prompt: "count:1", temperature: 3, stream: true }),
        await create({ prompt: "count:1", model: "absent" }),
      ];
    });
    assert.deepEqual(
      results.map(({ className, status, code, param }) => [className, status, code, param]),
      [
        ["BadRequestError", 400, "out_of_range", "temperature"],
        ["BadRequestError", 400, "out_of_range", "temperature"],
        ["NotFoundError", 404, "model_not_found", "model"],
      ],
    );
  });

  test("break out of a stream stops the generation", async () => {
    const text = await page.evaluate(async () => {
      const body = { model: "fake", prompt: "count:5000:2", stream: true };
      for await (const _ of await client().completions.create(body)) break;
      await until(async () => (await engine.info()).active === 0, "the generation stopped");
      const next = await client().completions.create({ model: "fake", prompt: "count:1" });
      return next.choices[0].text;
    });
    assert.equal(text, "é0 ");
  });

  test("abort stops a streamed and a plain generation", async () => {
    const results = await page.evaluate(async () => {
      const results = [];
      for (const stream of [true, false]) {
        const controller = new AbortController();
        const { signal } = controller;
        let begun = false;
        const running = caught(async () => {
          const body = { model: "fake", prompt: "count:5000:2", stream };
          const openai = client({ fetch: inpage.servedFetch });
          const answer = await openai.completions.create(body, { signal });
          begun = true;
          for await (const _ of answer);
        });
        // Before the head of a stream has arrived, the SDK reports the abort as that of a plain answer.
        const runs = async () => (stream ? begun : (await engine.info()).active === 1);
        await until(runs, "it runs");
        controller.abort();
        results.push((await running).className);
        await until(async () => (await engine.info()).active === 0, "the generation stopped");
      }
      return results;
    });
    // The SDK ends the loop of an aborted stream without an error.
    assert.deepEqual(results, [undefined, "APIUserAbortError"]);
  });

  test("a panic in a stream gives an error event, and the next request gets a new engine", async () => {
    const broken = await readStream(page, "panic-after:9");
    assert.equal(broken.code, "internal_error");
    const whole = await readStream(page, "count:2");
    assert.equal(whole.value, "é0 é1 ");
  });
});

test("after a forced reload the page is controlled again, or ready rejects with the reason", async () => {
  await serve();
  const session = await context.newCDPSession(page);
  const loaded = page.waitForEvent("load");
  await session.send("Page.reload", { ignoreCache: true });
  await loaded;
  await page.waitForFunction(() => window.loaded);
  assert.ok(await page.evaluate(() => navigator.serviceWorker.controller === null));
  const result = await page.evaluate(async () => {
    window.engine = await startFake();
    const result = await caught(() => inpage.serveFromPage(engine).ready);
    const viaFetchDoor = (await engine.fetch("/v1/models")).status;
    const viaWorker = (await fetch("/v1/models")).status;
    return { result, viaFetchDoor, viaWorker };
  });
  assert.equal(result.viaFetchDoor, 200);
  if (result.result.code) {
    assert.equal(result.result.code, "page_not_controlled");
    assert.match(result.result.message, /forced reload/);
  } else {
    assert.equal(result.viaWorker, 200);
  }
});

test("a second tab without an engine is served by the first", async () => {
  await serve();
  const second = await harness.open(context);
  const first = page;
  const result = await readStream(second, "count:4");
  assert.equal(result.value, "é0 é1 é2 é3 ");
  const produced = await first.evaluate(async () => (await engine.info()).produced);
  assert.equal(produced, 4);
});

test("a tab with its own engine is served by it", async () => {
  await serve();
  const second = await harness.open(context);
  await serve(second);
  await readStream(second, "count:4");
  const [first, own] = await Promise.all(
    [page, second].map((tab) => tab.evaluate(async () => (await engine.info()).produced)),
  );
  assert.deepEqual([first, own], [0, 4]);
});

test("a tab with its own engine is served by it, also if its thread is busy for a moment", async () => {
  await serve();
  const second = await harness.open(context);
  await serve(second);
  await second.evaluate((busy_ms) => {
    const { fetch } = window;
    window.fetch = (...request) => {
      const response = fetch(...request);
      const end = performance.now() + busy_ms;
      while (performance.now() < end);
      return response;
    };
  }, 300);
  await readStream(second, "count:4");
  const [first, own] = await Promise.all(
    [page, second].map((tab) => tab.evaluate(async () => (await engine.info()).produced)),
  );
  assert.deepEqual([first, own], [0, 4]);
});

test("closing the reading tab stops the generation in the serving tab", async () => {
  await serve();
  const second = await harness.open(context);
  const stream = readStream(second, "count:5000:5").catch(() => {});
  await page.evaluate(() => until(async () => (await engine.info()).active === 1, "it runs"));
  await second.close();
  await stream;
  await page.evaluate(() => until(async () => (await engine.info()).active === 0, "it stopped"));
});

test("closing the serving tab in mid-stream ends the stream with an error event", async () => {
  await serve();
  const second = await harness.open(context);
  const stream = readStream(second, "count:5000:5");
  await second.waitForFunction(() => window.streaming);
  await page.close();
  const result = await stream;
  assert.equal(result.code, "engine_unavailable");
  assert.match(result.message, /closed/);
});

/** In the page: sends a plain request that takes `count` times 5 ms. */
const askPlain = (tab, count) =>
  tab.evaluate(async (count) => {
    const response = await fetch("/v1/completions", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "fake", prompt: `count:${count}:5` }),
    });
    const { error } = await response.json();
    return { status: response.status, retryAfter: response.headers.get("retry-after"), error };
  }, count);

test("when the serving tab is closed before the response head, another one answers", async () => {
  await serve();
  const caller = await harness.open(context);
  const other = await harness.open(context);
  await serve(other);
  const running = askPlain(caller, 400);
  const isActive = (tab) => tab.evaluate(async () => (await engine.info()).active === 1);
  let busy;
  while (!busy) for (const tab of [page, other]) if (await isActive(tab)) busy = tab;
  await busy.close();
  assert.equal((await running).status, 200);
});

test("when the only serving tab is closed before the response head, the status is 503", async () => {
  await serve();
  const caller = await harness.open(context);
  const running = askPlain(caller, 5000);
  await page.evaluate(() => until(async () => (await engine.info()).active === 1, "it runs"));
  await page.close();
  const { status, retryAfter, error } = await running;
  assert.deepEqual([status, retryAfter], [503, "1"]);
  assert.deepEqual(
    [error.type, error.param, error.code],
    ["server_error", null, "engine_unavailable"],
  );
});

test("without any engine the network answers", async () => {
  await serve();
  const result = await page.evaluate(async () => {
    await serving.stop();
    const response = await fetch("/v1/models");
    return { status: response.status, text: await response.text() };
  });
  assert.deepEqual(result, { status: 404, text: "Not found\n" });
});

test("the generation ends after its service worker is stopped in mid-stream", async () => {
  await serve();
  const stream = readStream(page, "count:100000:5").catch(() => {});
  await page.waitForFunction(() => window.streaming);
  const session = await harness.browser.newBrowserCDPSession();
  const { targetInfos } = await session.send("Target.getTargets");
  for (const { type, targetId } of targetInfos) {
    if (type === "service_worker") await session.send("Target.closeTarget", { targetId });
  }
  await stream;
  await page.evaluate(() =>
    until(async () => (await engine.info()).active === 0, "the generation stopped", 20_000),
  );
});

test("a service worker that was stopped finds the engine again", async () => {
  await serve();
  const browserSession = await harness.browser.newBrowserCDPSession();
  const { targetInfos } = await browserSession.send("Target.getTargets");
  const workers = targetInfos.filter(({ type }) => type === "service_worker");
  assert.ok(workers.length > 0);
  for (const { targetId } of workers) await browserSession.send("Target.closeTarget", { targetId });
  const status = await page.evaluate(async () => (await fetch("/v1/models")).status);
  assert.equal(status, 200);
});

test("after stop with unregister, the network answers the paths", async () => {
  await serve();
  const status = await page.evaluate(async () => {
    await serving.stop({ unregister: true });
    return until(async () => !(await navigator.serviceWorker.getRegistration()), "it is gone");
  });
  assert.equal(status, true);
  await page.reload();
  assert.equal(await page.evaluate(async () => (await fetch("/v1/models")).status), 404);
});
