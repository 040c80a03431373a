//! Tabs and service workers that end, freeze or move to the back/forward cache while requests run, with a fake engine behind
//! the real worker host: another tab takes over, or the caller gets a clear error.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { startHarness } from "./harness.mjs";

let harness;
let context;
let page;

before(async () => {
  // By default, playwright disables the back/forward cache.
  harness = await startHarness({
    ignoreDefaultArgs: ["--disable-back-forward-cache"],
    wholeBrowser: true,
  });
});
after(() => harness?.close());
beforeEach(async () => {
  context = await harness.browser.newContext();
  page = await harness.open(context);
});
afterEach(() => context.close());

/** Starts an engine in `tab` and serves it. */
const serve = (tab) =>
  tab.evaluate(async () => {
    window.engine = await startFake();
    window.serving = inpage.serveFromPage(engine);
    await serving.ready;
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

/** In the page: reads a streamed completion to its end, or to its error. Sets `window.streaming` when it has begun. */
const readStream = (tab, prompt, door = "fetch") =>
  tab.evaluate(
    ([prompt, door]) =>
      caught(async () => {
        const ask = door === "fetch" ? undefined : inpage.servedFetch;
        const openai = client({ maxRetries: 0, ...(ask && { fetch: ask }) });
        const body = { model: "fake", prompt, stream: true };
        let text = "";
        for await (const chunk of await openai.completions.create(body)) {
          text += chunk.choices[0].text;
          window.streaming = true;
        }
        return text;
      }),
    [prompt, door],
  );

const isBusy = (tab) => tab.evaluate(async () => (await engine.info()).active > 0);
const untilBusy = (tab) =>
  tab.evaluate(() => until(async () => (await engine.info()).active > 0, "it runs"));
const untilIdle = (tab) =>
  tab.evaluate(() => until(async () => (await engine.info()).active === 0, "it stopped", 20_000));

/**
 * Freezes `tab`: notifies its scripts, then stops them, as browsers do. Resolves with the function that resumes it. Chromium
 * itself cannot be made to freeze it, because it freezes only hidden pages, and playwright makes every page visible.
 */
async function freeze(tab) {
  await tab.evaluate(() => document.dispatchEvent(new Event("freeze")));
  const session = await stopScripts(tab);
  return async () => {
    await session.send("Debugger.resume");
    await tab.evaluate(() => document.dispatchEvent(new Event("resume")));
  };
}

/** Stops the scripts of `tab`, but not its workers. */
async function stopScripts(tab) {
  const session = await context.newCDPSession(tab);
  await session.send("Debugger.enable");
  const paused = new Promise((resolve) => session.once("Debugger.paused", resolve));
  await session.send("Debugger.pause");
  // Scripts are stopped at their next statement.
  tab.evaluate(() => 0).catch(() => {});
  await paused;
  return session;
}

async function stopServiceWorkers(tab) {
  const session = await context.newCDPSession(tab);
  await session.send("ServiceWorker.enable");
  await session.send("ServiceWorker.stopAllWorkers");
  await session.detach();
}

describe("a service worker that is stopped in mid-stream", () => {
  test("ends the stream with an error event through servedFetch, and the generation", async () => {
    await serve(page);
    const stream = readStream(page, "count:100000:5", "servedFetch");
    await page.waitForFunction(() => window.streaming);
    await stopServiceWorkers(page);
    const { code, message, ...rest } = await stream;
    assert.equal(code, "engine_unavailable", JSON.stringify(rest).slice(0, 300) + message);
    assert.match(message, /service worker that relays it was stopped/);
    await untilIdle(page);
  });

  test("ends the stream with an error through plain fetch, and the generation", async () => {
    await serve(page);
    const stream = readStream(page, "count:100000:5");
    await page.waitForFunction(() => window.streaming);
    await stopServiceWorkers(page);
    const { className, value } = await stream;
    assert.equal(value, undefined);
    assert.ok(className);
    await untilIdle(page);
  });

  test("does not affect the next request", async () => {
    await serve(page);
    const stream = readStream(page, "count:100000:5", "servedFetch");
    await page.waitForFunction(() => window.streaming);
    await stopServiceWorkers(page);
    await stream;
    assert.equal((await readStream(page, "count:3")).value, "é0 é1 é2 ");
  });
});

test("an open stream keeps its service worker awake", async () => {
  await serve(page);
  const pinged = page.evaluate(
    () =>
      new Promise((resolve) => {
        navigator.serviceWorker.addEventListener("message", ({ data }) => {
          if (data.type === "inpage:ping") resolve(true);
        });
      }),
  );
  const stream = readStream(page, "count:100000:5", "servedFetch");
  assert.equal(await pinged, true);
  await page.evaluate(() => engine.dispose());
  assert.equal((await stream).code, "engine_unavailable");
});

describe("a frozen tab", () => {
  test("loses its requests to another tab with an engine", async () => {
    await serve(page);
    const other = await harness.open(context);
    await serve(other);
    const caller = await harness.open(context);
    const running = askPlain(caller, 400);
    let busy;
    while (!busy) for (const tab of [page, other]) if (await isBusy(tab)) busy = tab;
    await freeze(busy);
    assert.equal((await running).status, 200);
    // The frozen tab gets no further request, or is not waited for.
    assert.equal((await askPlain(caller, 1)).status, 200);
  });

  test("answers 503 with Retry-After if it has the only engine, and again when resumed", async () => {
    await serve(page);
    const caller = await harness.open(context);
    const running = askPlain(caller, 5000);
    await untilBusy(page);
    const resume = await freeze(page);
    const { status, retryAfter, error } = await running;
    assert.deepEqual([status, retryAfter, error.code], [503, "1", "engine_unavailable"]);
    assert.equal((await askPlain(caller, 1)).status, 503);
    await resume();
    assert.equal((await askPlain(caller, 1)).status, 200);
  });

  test("loses its streams to another tab, which continues them", async () => {
    await serve(page);
    const caller = await harness.open(context);
    const stream = readStream(caller, "count:300:5");
    await caller.waitForFunction(() => window.streaming);
    const other = await harness.open(context);
    await serve(other);
    await freeze(page);
    const { value, message } = await stream;
    assert.equal(value ?? message, Array.from({ length: 300 }, (_, i) => `é${i} `).join(""));
  });

  test("that does not announce it is detected because its engine is silent", async () => {
    await serve(page);
    const caller = await harness.open(context);
    const running = caller.evaluate(async () => {
      const response = await fetch("/v1/completions", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "fake", prompt: "block:40000" }),
      });
      return { status: response.status, error: (await response.json()).error };
    });
    // A blocked worker cannot tell that the request has arrived.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    // A page that runs would say that the tab is not frozen.
    await stopScripts(page);
    const { status, error } = await running;
    assert.deepEqual([status, error.code], [503, "engine_unavailable"]);
    assert.match(error.message, /does not answer any more/);
  });

  test("ends its streams with an error event if it has the only engine", async () => {
    await serve(page);
    const caller = await harness.open(context);
    const stream = readStream(caller, "count:5000:5");
    await caller.waitForFunction(() => window.streaming);
    await freeze(page);
    const { code, message } = await stream;
    assert.equal(code, "engine_unavailable");
    assert.match(message, /frozen/);
  });
});

describe("a tab in the back/forward cache", () => {
  /** Leaves the page of `tab`, which the browser keeps. The page notifies other tabs when it is back. */
  const leave = async (tab) => {
    await tab.evaluate(() => {
      addEventListener("pageshow", ({ persisted }) => {
        new BroadcastChannel("test").postMessage(persisted);
      });
    });
    await tab.goto(`${harness.origin}/plain`);
  };
  /** Goes back to the page. `caller` gets its notification. */
  const comeBack = async (tab, caller) => {
    const returned = caller.evaluate(
      () =>
        new Promise((resolve) => {
          new BroadcastChannel("test").onmessage = ({ data }) => resolve(data);
        }),
    );
    await tab.evaluate(() => setTimeout(() => history.back())).catch(() => {});
    assert.equal(await returned, true, "the page was not kept");
  };

  test("loses its requests to another tab, and serves again when it comes back", async () => {
    await serve(page);
    const caller = await harness.open(context);
    const running = askPlain(caller, 400);
    await untilBusy(page);
    const other = await harness.open(context);
    await serve(other);
    await leave(page);
    assert.equal((await running).status, 200);
    await other.close();
    await comeBack(page, caller);
    await caller.evaluate(() => until(async () => (await fetch("/v1/models")).ok, "it serves"));
    assert.equal((await askPlain(caller, 1)).status, 200);
  });

  test("does not serve, so the site's own paths go to the network", async () => {
    await serve(page);
    const caller = await harness.open(context);
    await leave(page);
    const status = await caller.evaluate(async () => (await fetch("/v1/models")).status);
    assert.equal(status, 404);
  });
});
