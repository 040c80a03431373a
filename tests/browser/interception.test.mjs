//! What the service worker intercepts and what reaches the network. A server that stands in for a remote API records what
//! leaves the page. The engine is a fake one.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { startApiServer } from "./api_server.mjs";
import { startHarness } from "./harness.mjs";

let harness;
let api;
let context;
let page;

before(async () => {
  [harness, api] = await Promise.all([startHarness(), startApiServer()]);
});
after(() => Promise.all([harness?.close(), api?.close()]));
beforeEach(async () => {
  context = await harness.browser.newContext();
  page = await harness.open(context);
  api.requests.length = 0;
});
afterEach(() => context.close());

/** Serves a fake engine in `tab`; resolves when it is ready. */
const serve = (tab, options = {}, engineOptions = {}) =>
  tab.evaluate(
    async ([options, engineOptions]) => {
      window.engine = await startFake(engineOptions);
      window.serving = inpage.serveFromPage(engine, options);
      await serving.ready;
    },
    [options, engineOptions],
  );

/**
 * In the page: requests a completion from `origin`, with an API key. With `options`, first serves an engine with them and waits
 * until it is ready.
 */
const complete = (tab, origin, path = "/v1/completions", options = undefined) =>
  tab
    .evaluate(
      ([origin, path, options]) =>
        caught(async () => {
          if (options) {
            window.engine ??= await startFake();
            window.serving = inpage.serveFromPage(engine, options);
            await serving.ready;
          }
          const response = await fetch(origin + path, {
            method: "POST",
            headers: { "content-type": "application/json", authorization: "Bearer secret" },
            body: JSON.stringify({ model: "fake", prompt: "count:2" }),
          });
          const text = await response.text();
          const body = text.startsWith("{") ? JSON.parse(text) : {};
          return [response.status, body.choices?.[0].text ?? body.error?.code ?? body.from ?? text];
        }),
      [origin, path, options],
    )
    .then(({ value, message }) => value ?? message);

const serveAndComplete = (tab, origin, options) =>
  complete(tab, origin, "/v1/completions", options);

const LOCAL = [200, "é0 é1 "];
const REMOTE = [200, "the network"];
/** The responses of the page's own server, which supports neither the paths nor POST. */
const OWN_SERVER = [405, ""];

/** Stops every service worker, as the browser does when they are idle. */
async function stopServiceWorkers() {
  const session = await context.newCDPSession(page);
  await session.send("ServiceWorker.enable");
  await session.send("ServiceWorker.stopAllWorkers");
  await session.detach();
}

describe("ready means that this page's requests stay here", () => {
  for (const repetition of [1, 2, 3]) {
    test(`after a visit with another configuration (${repetition})`, async () => {
      await serve(page);
      await page.reload();
      await page.waitForFunction(() => window.loaded);
      const origins = [api.origin];
      assert.deepEqual(await serveAndComplete(page, api.origin, { origins }), LOCAL);
      assert.deepEqual(api.requests, []);
    });
  }

  test("in the same page, one call after the other", async () => {
    await serve(page);
    const origins = [api.origin];
    assert.deepEqual(await serveAndComplete(page, api.origin, { origins }), LOCAL);
    assert.deepEqual(api.requests, []);
  });

  test("with other tabs, which keep their own configurations", async () => {
    const other = await harness.open(context);
    await Promise.all([
      serve(page, { basePaths: ["/v1"] }),
      serve(other, { origins: [api.origin], basePaths: ["/v1", "/api"] }),
    ]);
    assert.deepEqual(await complete(page, harness.origin), LOCAL);
    assert.deepEqual(await complete(other, api.origin), LOCAL);
    await page.reload();
    await page.waitForFunction(() => window.loaded);
    await serve(page, { basePaths: ["/v1"] });
    assert.deepEqual(await complete(other, api.origin), LOCAL);
    assert.deepEqual(await complete(page, harness.origin), LOCAL);
    assert.deepEqual(api.requests, []);
  });

  test("after the service worker was stopped", async () => {
    await serve(page, { origins: [api.origin] });
    for (let repetition = 0; repetition < 3; repetition++) {
      await stopServiceWorkers();
      assert.deepEqual(await complete(page, api.origin), LOCAL);
    }
    assert.deepEqual(api.requests, []);
  });

  test("while another tab registers another script", async () => {
    await serve(page, { origins: [api.origin] });
    const other = await harness.open(context);
    const script = { serviceWorkerUrl: "/fixtures/open_service_worker.mjs", scope: "/" };
    await serve(other, { ...script, type: "module" });
    assert.deepEqual(await complete(page, api.origin), LOCAL);
    assert.deepEqual(await complete(other, api.origin), LOCAL);
    assert.deepEqual(api.requests, []);
  });
});

describe("ready rejects", () => {
  /** In the page: why `ready` rejects. */
  const refusal = (options) =>
    page.evaluate(async (options) => {
      window.engine = await startFake();
      return caught(() => inpage.serveFromPage(engine, options).ready);
    }, options);

  test("when the site's own worker does not intercept what the page serves", async () => {
    const serviceWorkerUrl = "/fixtures/fixed_service_worker.mjs";
    const worker = { serviceWorkerUrl, scope: "/", type: "module" };
    const { code, message } = await refusal({ ...worker, origins: [api.origin] });
    assert.equal(code, "service_worker_unavailable");
    assert.match(message, /fixed_service_worker\.mjs intercepts .* add that there/);
    assert.ok(message.includes(api.origin), message);
    await page.evaluate((options) => inpage.serveFromPage(engine, options).ready, {
      ...worker,
      basePaths: ["/v1"],
    });
    assert.deepEqual(await complete(page, harness.origin), LOCAL);
  });

  test("when the worker does not use inpage", async () => {
    const serviceWorkerUrl = "/fixtures/foreign_service_worker.mjs";
    const { code, message } = await refusal({ serviceWorkerUrl, scope: "/", type: "module" });
    assert.equal(code, "service_worker_unavailable");
    assert.match(message, /foreign_service_worker.* does not answer this page: host the sw\.js/);
  });

  test("immediately when an origin is not valid", async () => {
    const { name, message } = await refusal({ origins: ["api.example.com/v1"] });
    assert.equal(name, "TypeError");
    assert.match(message, /origins\[0\] is "api\.example\.com\/v1"/);
  });
});

describe("what is not the endpoint's", () => {
  test("reaches the site's own server", async () => {
    await serve(page, { origins: [api.origin] });
    const paths = ["/v1/users/me", "/v1", "/v1/chat/unknown", "/v2/models"];
    for (const path of paths) {
      const [own, body] = await page.evaluate(async (path) => {
        const response = await fetch(path);
        return [response.status, await response.text()];
      }, path);
      assert.deepEqual([own, body], [404, "Not found\n"], path);
      assert.deepEqual(await complete(page, api.origin, path), REMOTE, path);
    }
    // The browser may cache the response to a preflight.
    const paths_seen = api.requests.filter(([method]) => method === "POST");
    assert.deepEqual(
      paths_seen.map(([, path]) => path),
      paths,
    );
  });
});

describe("when no page serves any more", () => {
  test("after stop(), the network answers", async () => {
    await serve(page, { origins: [api.origin] });
    assert.deepEqual(await complete(page, api.origin), LOCAL);
    await page.evaluate(() => serving.stop());
    assert.deepEqual(await complete(page, harness.origin), OWN_SERVER);
    assert.deepEqual(await complete(page, api.origin), REMOTE);
    // Serves again, with another worker.
    await page.evaluate((origin) => {
      window.serving = inpage.serveFromPage(engine, { origins: [origin] });
      return serving.ready;
    }, api.origin);
    api.requests.length = 0;
    assert.deepEqual(await complete(page, api.origin), LOCAL);
    assert.deepEqual(api.requests, []);
  });

  test("after stop() in one of two tabs, the other one answers both", async () => {
    const other = await harness.open(context);
    await serve(page, { origins: [api.origin] });
    await serve(other, { origins: [api.origin] });
    await page.evaluate(() => serving.stop());
    assert.deepEqual(await complete(page, api.origin), LOCAL);
    assert.deepEqual(await complete(page, harness.origin), LOCAL);
    assert.equal(await other.evaluate(async () => (await engine.info()).produced), 4);
    assert.deepEqual(api.requests, []);
  });

  for (const [how, end] of [
    ["its tab is closed", (tab) => tab.close()],
    ["its engine is disposed", (tab) => tab.evaluate(() => engine.dispose())],
  ]) {
    test(`after ${how}, own paths go to the network, and other origins are refused`, async () => {
      const other = await harness.open(context);
      await serve(other, { origins: [api.origin] });
      assert.deepEqual(await complete(page, api.origin), LOCAL);
      await end(other);
      assert.deepEqual(await complete(page, harness.origin), OWN_SERVER);
      assert.deepEqual(await complete(page, api.origin), [503, "engine_unavailable"]);
      assert.deepEqual(api.requests, []);
    });
  }

  test("after stop() with unregister, the network answers immediately and after a reload", async () => {
    await serve(page, { origins: [api.origin] });
    await page.evaluate(() => serving.stop({ unregister: true }));
    for (const _ of [1, 2]) {
      assert.deepEqual(await complete(page, harness.origin), OWN_SERVER);
      assert.deepEqual(await complete(page, api.origin), REMOTE);
      await page.reload();
      await page.waitForFunction(() => window.loaded);
    }
    const registrations = await page.evaluate(async () => {
      return (await navigator.serviceWorker.getRegistrations()).length;
    });
    assert.equal(registrations, 0);
  });
});

test("two engines of a page answer for their own base paths", async () => {
  const produced = await page.evaluate(async () => {
    const one = await startFake({ basePaths: ["/one"] });
    const two = await startFake({ basePaths: ["/two"] });
    const servings = [inpage.serveFromPage(one), inpage.serveFromPage(two)];
    await Promise.all(servings.map(({ ready }) => ready));
    const ask = (path) =>
      fetch(`${path}/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "fake", prompt: "count:2" }),
      });
    const statuses = [(await ask("/one")).status, (await ask("/two")).status];
    statuses.push((await ask("/two")).status);
    await servings[0].stop();
    statuses.push((await ask("/one")).status, (await ask("/two")).status);
    return [statuses, (await one.info()).produced, (await two.info()).produced];
  });
  assert.deepEqual(produced, [[200, 200, 200, 405, 200], 2, 6]);
});
