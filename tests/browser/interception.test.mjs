//! The requests that the service worker intercepts, and those that reach the network. A server that stands in for a remote API records what
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

test("a route is intercepted however its path is spelled", async () => {
  await serve(page, { origins: [api.origin] }, { fetchOrigins: [api.origin] });
  const viaEngine = (url) =>
    page.evaluate(async (url) => {
      const body = JSON.stringify({ model: "fake", prompt: "count:2" });
      const headers = { "content-type": "application/json" };
      return (await engine.fetch(url, { method: "POST", headers, body })).status;
    }, url);
  for (const path of [
    "//v1/completions",
    "/v1//completions//",
    "/v1/%63ompletions",
    "/v1%2Fcompletions",
    "/V1/Completions",
  ]) {
    for (const origin of [api.origin, harness.origin]) {
      assert.deepEqual(await complete(page, origin, path), LOCAL, origin + path);
      assert.equal(await viaEngine(origin + path), 200, origin + path);
    }
  }
  assert.deepEqual(api.requests, []);
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
    const { name, code, message } = await refusal({ origins: ["api.example.com/v1"] });
    assert.deepEqual([name, code], ["InpageError", "invalid_option"]);
    assert.match(message, /origins\[0\] is "api\.example\.com\/v1"/);
  });
});

describe("the registration has a time limit", () => {
  /** In `tab`: limits are a twentieth of what they are. */
  const shortenLimits = (tab) =>
    tab.evaluate(() => {
      const { timeout } = AbortSignal;
      AbortSignal.timeout = (limit_ms) => timeout.call(AbortSignal, limit_ms / 20);
    });

  /** In `tab`: why `ready` rejects. */
  const refusal = (tab) =>
    tab.evaluate(async () => {
      window.engine ??= await startFake();
      return caught(() => inpage.serveFromPage(engine).ready);
    });

  test("a pending one rejects ready, and does not hold up others", async () => {
    await shortenLimits(page);
    await page.evaluate(() => {
      navigator.serviceWorker.register = () => new Promise(() => {});
    });
    const { code, message } = await refusal(page);
    assert.equal(code, "service_worker_unavailable");
    assert.match(message, /could not be registered: the browser has not finished .* after 20 s/);
    const other = await harness.open(context);
    await serve(other);
    assert.deepEqual(await complete(other, harness.origin), LOCAL);
    // The page that could not register is under the other one's worker by now.
    await page.evaluate(async () => {
      delete navigator.serviceWorker.register;
      await inpage.serveFromPage(engine).ready;
    });
  });

  test("so has the wait for another tab that registers", async () => {
    const other = await harness.open(context);
    await other.evaluate(() => {
      const name = `inpage-registration:${location.origin}/`;
      return new Promise((resolve) => {
        navigator.locks.request(name, () => {
          resolve();
          return new Promise(() => {});
        });
      });
    });
    await shortenLimits(page);
    const { code, message } = await refusal(page);
    assert.equal(code, "service_worker_unavailable");
    assert.match(message, /another tab of this site has been registering it for 30 s/);
    await other.close();
    await page.evaluate(() => inpage.serveFromPage(engine).ready);
  });
});

describe("the console tells", () => {
  let warnings;
  beforeEach(() => {
    warnings = [];
    page.on("console", (message) => {
      if (message.type() === "warning") warnings.push(message.text());
    });
  });
  const warningOf = async (pattern) => {
    for (const end = Date.now() + 20_000; !warnings.some((text) => pattern.test(text)); ) {
      assert.ok(Date.now() < end, `no warning like ${pattern}: ${warnings.join("\n")}`);
      await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 20)));
    }
  };

  test("that the requests of a page are not intercepted, though it awaits nothing", async () => {
    await page.evaluate(async () => {
      inpage.serveFromPage(await startFake(), { serviceWorkerUrl: "/absent.js" });
    });
    await warningOf(
      /^inpage: requests of this page are not intercepted: .*could not be registered/,
    );
  });

  test("that no worker controls the page any more", async () => {
    await serve(page);
    assert.deepEqual(warnings, []);
    await page.evaluate(() => fetch("/logout"));
    await warningOf(/^inpage: requests of this page reach the network, because no service worker/);
  });

  test("that another script was registered, which is replaced", async () => {
    await serve(page, { origins: [api.origin] });
    assert.deepEqual(warnings, []);
    await page.evaluate(async () => {
      const container = navigator.serviceWorker;
      const script = () => container.controller?.scriptURL ?? "";
      const options = { scope: "/", type: "module" };
      await container.register("/fixtures/foreign_service_worker.mjs", options);
      await until(() => script().includes("foreign"), "the other worker takes over", 20_000);
      await until(() => script().includes("/sw.js"), "it is replaced", 20_000);
    });
    await warningOf(/^inpage: another script is registered .*foreign_service_worker\.mjs/);
    await page.evaluate(() => inpage.serveFromPage(engine).ready);
    assert.deepEqual(await complete(page, api.origin), LOCAL);
    assert.deepEqual(api.requests, []);
    assert.equal(warnings.length, 1);
  });
});

describe("what a service worker does not see", () => {
  /** Ways out of a page, by their names in docs/guide.md. Each is a script with `url`, and resolves when it has ended. */
  const WAYS = {
    "synchronous XMLHttpRequest": `
      const request = new XMLHttpRequest();
      request.open("POST", url, false);
      request.send("key");`,
    "an empty frame": `
      const frame = document.createElement("iframe");
      document.body.append(frame);
      await frame.contentWindow.fetch(url, { method: "POST", body: "key" });`,
    "a sandboxed frame": `
      const send = \`fetch("\${url}", { method: "POST", body: "key", mode: "no-cors" })\`;
      const tell = "parent.postMessage(0, '*')";
      const frame = document.createElement("iframe");
      frame.sandbox = "allow-scripts";
      frame.srcdoc = \`<script>\${send}.finally(() => \${tell})</\` + "script>";
      const told = new Promise((resolve) => addEventListener("message", resolve, { once: true }));
      document.body.append(frame);
      await told;`,
    "a data: worker": `
      const send = \`fetch("\${url}", { method: "POST", body: "key", mode: "no-cors" })\`;
      const script = send + ".finally(() => postMessage(0))";
      const worker = new Worker("data:text/javascript," + encodeURIComponent(script));
      await new Promise((resolve) => worker.addEventListener("message", resolve));`,
  };
  /** In the page: goes `way`. */
  const go = (way) =>
    page.evaluate(
      ([script, url]) => {
        const run = new Function("url", `return (async () => {${script}})()`);
        return run(url).catch(() => {});
      },
      [WAYS[way], `${api.origin}/v1/completions`],
    );

  for (const way of Object.keys(WAYS)) {
    test(`a policy of connect-src stops ${way}, and engine.fetch answers`, async () => {
      // Without the policy it reaches the network, which docs/guide.md says.
      await serve(page, { origins: [api.origin] }, { fetchOrigins: [api.origin] });
      await go(way);
      assert.notDeepEqual(api.requests, []);
      api.requests.length = 0;
      const status = await page.evaluate(async (url) => {
        const policy = document.createElement("meta");
        policy.httpEquiv = "Content-Security-Policy";
        policy.content = "connect-src 'self'";
        document.head.append(policy);
        const body = JSON.stringify({ model: "fake", prompt: "count:1" });
        const headers = { "content-type": "application/json" };
        return (await engine.fetch(url, { method: "POST", headers, body })).status;
      }, `${api.origin}/v1/completions`);
      assert.equal(status, 200);
      await go(way);
      assert.deepEqual(api.requests, []);
    });
  }
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

describe("after the storage of the site was cleared", () => {
  /** In `tab`: logs out, and waits until a service worker controls the tab again. */
  const logOut = (tab) =>
    tab.evaluate(async () => {
      const container = navigator.serviceWorker;
      const former = container.controller;
      await fetch("/logout");
      const isNew = () => container.controller !== null && container.controller !== former;
      await until(isNew, "another worker controls the page", 20_000);
    });

  /** In `tab`: the number of claims that the service worker sees. */
  const claimsSeen = (tab) =>
    tab.evaluate(async () => {
      const { port1, port2 } = new MessageChannel();
      const report = new Promise((resolve) => {
        port1.onmessage = ({ data }) => resolve(data);
      });
      navigator.serviceWorker.controller.postMessage({ type: "inpage:report" }, [port2]);
      return (await report).claims.length;
    });
  const seesClaims = async (tab, count) => {
    for (const end = Date.now() + 20_000; (await claimsSeen(tab)) !== count; ) {
      assert.ok(Date.now() < end, `${await claimsSeen(tab)} claims are seen`);
    }
  };

  test("the page that serves still answers, and its claim is seen again", async () => {
    await serve(page, { origins: [api.origin] });
    await logOut(page);
    assert.deepEqual(await complete(page, harness.origin), LOCAL);
    assert.deepEqual(await complete(page, api.origin), LOCAL);
    await seesClaims(page, 1);
    const newcomer = await harness.open(context);
    assert.deepEqual(await complete(newcomer, harness.origin), LOCAL);
    assert.deepEqual(await complete(newcomer, api.origin), LOCAL);
    await page.evaluate(() => engine.dispose());
    assert.deepEqual(await complete(newcomer, harness.origin), OWN_SERVER);
    assert.deepEqual(await complete(newcomer, api.origin), [503, "engine_unavailable"]);
    assert.deepEqual(api.requests, []);
  });

  test("another call is ready, and stop() leaves the requests to the network", async () => {
    await serve(page, { origins: [api.origin] });
    await logOut(page);
    await page.evaluate(async (origin) => {
      window.second = inpage.serveFromPage(engine, { origins: [origin] });
      await second.ready;
    }, api.origin);
    await seesClaims(page, 2);
    assert.deepEqual(await complete(page, api.origin), LOCAL);
    assert.deepEqual(api.requests, []);
    await page.evaluate(() => Promise.all([serving.stop(), second.stop()]));
    assert.deepEqual(await complete(page, harness.origin), OWN_SERVER);
    assert.deepEqual(await complete(page, api.origin), REMOTE);
  });

  test("tabs with other configurations keep theirs, also when one of them stops", async () => {
    const other = await harness.open(context);
    await Promise.all([
      serve(page, { origins: [api.origin] }),
      serve(other, { origins: [api.origin], basePaths: ["/v1", "/api"] }),
    ]);
    await logOut(page);
    await other.waitForFunction(() => navigator.serviceWorker.controller !== null);
    await seesClaims(page, 2);
    assert.deepEqual(await complete(other, api.origin, "/api/completions"), LOCAL);
    await page.evaluate(() => serving.stop());
    assert.deepEqual(await complete(page, api.origin), LOCAL);
    assert.deepEqual(await complete(other, api.origin, "/api/completions"), LOCAL);
    assert.deepEqual(api.requests, []);
  });

  test("the service worker asks the page when its claim cannot be renewed", async () => {
    await serve(page, { origins: [api.origin] });
    // The renewal needs a frame.
    await page.evaluate(() => {
      document.documentElement.append = () => {
        throw new Error("no frames");
      };
    });
    await logOut(page);
    const newcomer = await harness.open(context, "/plain");
    await newcomer.waitForFunction(() => navigator.serviceWorker.controller !== null);
    assert.equal(await newcomer.evaluate(async () => (await fetch("/v1/models")).status), 200);
    assert.equal(await claimsSeen(page), 0);
    await stopServiceWorkers();
    assert.deepEqual(await complete(page, harness.origin), LOCAL);
    assert.deepEqual(await complete(page, api.origin), LOCAL);
    assert.deepEqual(api.requests, []);
  });

  test("a page whose frame the app removed notices that when it is asked", async () => {
    await serve(page, { origins: [api.origin] });
    await logOut(page);
    await seesClaims(page, 1);
    await page.evaluate(() => {
      for (const frame of document.querySelectorAll("iframe")) frame.remove();
    });
    await seesClaims(page, 0);
    assert.deepEqual(await complete(page, api.origin), LOCAL);
    await seesClaims(page, 1);
    await page.evaluate(() => serving.stop());
    assert.deepEqual(await complete(page, api.origin), REMOTE);
  });
});

test("two engines of a page answer for their own base paths", async () => {
  const produced = await page.evaluate(async () => {
    const one = await startFake({ endpoint: { basePaths: ["/one"] } });
    const two = await startFake({ endpoint: { basePaths: ["/two"] } });
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
