//! Threads in pages that are not cross-origin isolated: the engine in a hidden frame that the service worker isolates, and the
//! plain worker wherever there can be no such frame.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { startHarness, startServer, wasmIsBuilt } from "./harness.mjs";

const FRAME_PATH = "/inpage-isolated-frame.html";

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

/** Registers the service worker without an engine, and waits until it has replaced whatever was active before. */
const register = (tab = page, script = "/sw.js?base=/v1") =>
  tab.evaluate(async (script) => {
    const registration = await navigator.serviceWorker.register(script, {
      scope: "/",
      type: script.includes("/fixtures/") ? "module" : "classic",
    });
    const { href } = new URL(script, location.href);
    const isReplaced = () =>
      registration.active?.scriptURL === href && registration.active.state === "activated";
    await until(isReplaced, "the service worker is active", 30_000);
  }, script);

/** Starts a fake engine on the CPU as `window.engine`; returns how it is isolated. */
const startFake = (options = {}, tab = page) =>
  tab.evaluate(async (options) => {
    window.engine = await window.startFake({ device: "cpu", threads: 2, ...options });
    const { isolation, isolationReason } = await engine.info();
    return { isolation, isolationReason, frames: frames.length };
  }, options);

const inFrame = { isolation: "frame", isolationReason: undefined, frames: 1 };

const skip = !wasmIsBuilt && "skipped: the wasm module is not built";

describe("the real engine in a frame", { skip }, () => {
  const BODY = { model: "tales", prompt: "Once upon a time", temperature: 0, max_tokens: 64 };

  test("has threads, and answers, streams and aborts as on one thread", async () => {
    const found = await page.evaluate(async (body) => {
      const run = async (options) => {
        const engine = await inpage.createEngine({ device: "cpu", shared: false, ...options });
        const { threads, isolation } = await engine.info();
        const { choices } = await engine.completions.create({ ...body, logprobs: 3 });
        return { engine, found: { threads, isolation }, choice: choices[0] };
      };
      const alone = await run({ threads: 1, isolatedFrame: {} });
      const { engine, ...together } = await run({ threads: 2, isolatedFrame: {} });
      let streamed = "";
      const stream = await engine.completions.create({ ...body, stream: true });
      for await (const { choices } of stream) streamed += choices[0].text;
      const ended = new AbortController();
      const aborted = await caught(async () => {
        const endless = { ...body, max_tokens: 400, stream: true };
        const stream = await engine.completions.create(endless, { signal: ended.signal });
        for await (const _ of stream) ended.abort();
      });
      const hasEnded = async () => (await engine.info()).activeGenerations === 0;
      await until(hasEnded, "the request has ended", 30_000);
      const framesBefore = frames.length;
      await engine.dispose();
      await alone.engine.dispose();
      const isIsolated = crossOriginIsolated;
      const framesAfter = frames.length;
      return { alone, together, streamed, aborted, framesBefore, framesAfter, isIsolated };
    }, BODY);
    assert.deepEqual(found.alone.found, { threads: 1, isolation: "none" });
    assert.deepEqual(found.together.found, { threads: 2, isolation: "frame" });
    assert.deepEqual(found.together.choice, found.alone.choice);
    assert.equal(found.streamed, found.alone.choice.text);
    assert.equal(found.aborted.name, "AbortError");
    assert.deepEqual([found.framesBefore, found.framesAfter], [1, 0]);
    assert.equal(found.isIsolated, false);
  });

  test("is there on the first visit, and answers plain fetch through the same service worker", async () => {
    const found = await page.evaluate(async (body) => {
      const engine = await inpage.createEngine({
        device: "cpu",
        threads: 2,
        shared: false,
        isolatedFrame: { serviceWorkerUrl: "/sw.js" },
      });
      const [frame] = document.getElementsByTagName("iframe");
      const scriptUrl = async () => (await navigator.serviceWorker.ready).active.scriptURL;
      const first = await scriptUrl();
      // In flight while the service worker is replaced by one with another query.
      const inFlight = engine.completions.create({ ...body, max_tokens: 200 });
      await inpage.serveFromPage(engine).ready;
      const sameQuery = (await scriptUrl()) === first;
      const other = "https://api.example.invalid";
      await inpage.serveFromPage(engine, { origins: [other] }).ready;
      const otherQuery = (await scriptUrl()) !== first;
      const whole = (await inFlight).choices[0].finish_reason;
      const texts = [];
      for (const origin of [location.origin, other]) {
        const response = await fetch(`${origin}/v1/completions`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        });
        texts.push((await response.json()).choices[0].text);
      }
      const { threads } = await engine.info();
      const isSameFrame = document.getElementsByTagName("iframe")[0] === frame;
      return { sameQuery, otherQuery, whole, texts, threads, isSameFrame };
    }, BODY);
    assert.deepEqual([found.sameQuery, found.otherQuery, found.isSameFrame], [true, true, true]);
    assert.match(found.whole, /^(stop|length)$/);
    assert.ok(found.texts[0].length > 0);
    assert.equal(found.texts[0], found.texts[1]);
    assert.equal(found.threads, 2);
  });
});

describe("the frame", () => {
  beforeEach(() => register());

  test("is hidden, is not in the body, and is gone with the engine", async () => {
    assert.deepEqual(await startFake(), inFrame);
    const found = await page.evaluate(async () => {
      document.head.append(
        Object.assign(document.createElement("style"), {
          textContent: "iframe { display: block !important; width: 100px; height: 100px }",
        }),
      );
      document.body.replaceWith(document.createElement("body"));
      const [frame] = document.getElementsByTagName("iframe");
      const { choices } = await engine.completions.create({ model: "fake", prompt: "count:2" });
      const isShown = frame.checkVisibility();
      const isAnnounced = frame.getAttribute("aria-hidden") !== "true";
      await engine.dispose();
      return { text: choices[0].text, isShown, isAnnounced, frames: frames.length };
    });
    assert.deepEqual(found, { text: "é0 é1 ", isShown: false, isAnnounced: false, frames: 0 });
  });

  test("is replaced when the app removes it, and the in-flight request continues", async () => {
    await startFake();
    const found = await page.evaluate(async () => {
      const [frame] = document.getElementsByTagName("iframe");
      let text = "";
      const body = { model: "fake", prompt: "count:60:5", stream: true };
      for await (const { choices } of await engine.completions.create(body)) {
        text += choices[0].text;
        if (text.startsWith("é0 é1 é2 ")) frame.remove();
      }
      const { isolation, produced } = await engine.info();
      const isNew = document.getElementsByTagName("iframe")[0] !== frame;
      return { text, isolation, isNew, frames: frames.length, isWhole: produced === 60 };
    });
    const text = Array.from({ length: 60 }, (_, index) => `é${index} `).join("");
    const expected = { text, isolation: "frame", isNew: true, frames: 1, isWhole: false };
    assert.deepEqual(found, expected);
  });

  test("is replaced by another one after the storage of the site was cleared", async () => {
    assert.deepEqual(await startFake(), inFrame);
    const isolation = await page.evaluate(async () => {
      await inpage.serveFromPage(engine).ready;
      const former = navigator.serviceWorker.controller;
      await fetch("/logout");
      const isGone = () => navigator.serviceWorker.controller !== former;
      await until(isGone, "the former worker is gone", 20_000);
      await inpage.serveFromPage(engine).ready;
      await engine.reload();
      const { isolation, isolationReason } = await engine.info();
      return isolationReason ?? isolation;
    });
    assert.equal(isolation, "frame");
  });

  test("is given up with an engine that is disposed before it has started", async () => {
    const found = await page.evaluate(async () => {
      const engine = await window.startFake({ device: "cpu", threads: 2, background: true });
      await until(() => frames.length === 1, "the frame is there", 30_000);
      await engine.dispose();
      return frames.length;
    });
    assert.equal(found, 0);
  });

  test("carries the failure of an engine", async () => {
    const found = await page.evaluate(async () => {
      const options = { device: "cpu", threads: 2 };
      const failed = await caught(() => window.startFake({ ...options, fakeStartError: true }));
      await until(() => frames.length === 0, "the frame is gone", 30_000);
      return failed.message;
    });
    assert.match(found, /the fake engine cannot start/);
  });

  test("holds the engine that tabs share", async () => {
    const other = await harness.open(context);
    assert.equal((await startFake({ shared: "same" })).isolation, "frame");
    assert.deepEqual(await startFake({ shared: "same" }, other), { ...inFrame, frames: 0 });
    await page.close();
    const found = await other.evaluate(async () => {
      const { choices } = await engine.completions.create({ model: "fake", prompt: "count:2" });
      const { isolation } = await engine.info();
      return { text: choices[0].text, isolation, frames: frames.length };
    });
    assert.deepEqual(found, { text: "é0 é1 ", isolation: "frame", frames: 1 });
  });

  test("is not a page of its own", async () => {
    const tab = await context.newPage();
    const response = await tab.goto(harness.origin + FRAME_PATH);
    assert.equal(response.status(), 404);
    assert.equal(response.headers()["document-isolation-policy"], undefined);
    const fetched = await page.evaluate(async (path) => (await fetch(path)).status, FRAME_PATH);
    assert.equal(fetched, 404);
  });

  test("obeys the page that contains it only", async () => {
    /** Embeds the frame in `tab`, sends it `send`'s message, and returns how it answered. */
    const answersTo = async (tab, send) => {
      const url = harness.origin + FRAME_PATH;
      await tab.evaluate(
        (url) =>
          new Promise((resolve) => {
            const frame = Object.assign(document.createElement("iframe"), { src: url });
            frame.addEventListener("load", resolve);
            document.documentElement.append(frame);
          }),
        url,
      );
      const frame = tab.frames().find((frame) => frame.url() === url);
      assert.equal(await frame.evaluate(() => crossOriginIsolated), true);
      await frame.evaluate(() => {
        window.answers = [];
        // Before it answers, the frame takes the lock that the message names.
        navigator.locks.request = async (name) => answers.push(name);
        // Comes after the frame's own listener.
        addEventListener("message", () => {
          window.isSent = true;
        });
      });
      await tab.evaluate(send);
      await frame.waitForFunction(() => window.isSent);
      const answers = await frame.evaluate(() => answers);
      await tab.evaluate(() => document.querySelector("iframe").remove());
      return answers;
    };
    const asParent = () =>
      frames[0].postMessage({ type: "inpage:frame", lock: "test" }, "*", [
        new MessageChannel().port1,
      ]);
    assert.deepEqual(await answersTo(page, asParent), ["test"]);
    const asOther = () =>
      frames[0].postMessage({ type: "other" }, "*", [new MessageChannel().port1]);
    assert.deepEqual(await answersTo(page, asOther), []);
    // A frame of the same site beside it.
    const asSibling = () => {
      const sibling = document.createElement("iframe");
      document.body.append(sibling);
      const script = sibling.contentDocument.createElement("script");
      script.textContent = `parent.frames[0].postMessage(
        { type: "inpage:frame", lock: "test" }, "*", [new MessageChannel().port1])`;
      sibling.contentDocument.body.append(script);
    };
    assert.deepEqual(await answersTo(page, asSibling), []);
    // A page of another origin of the same site, for which the service worker answers, too.
    const foreign = await startServer();
    try {
      const tab = await context.newPage();
      await tab.goto(`${foreign.origin}/plain`);
      assert.deepEqual(await answersTo(tab, asParent), []);
    } finally {
      await foreign.close();
    }
  });
});

test("a page that is kept for offline visits has its frame there, too", async () => {
  // The server has a file at this path, which is not the frame that the page sees.
  const own = await startHarness({ mounts: { [FRAME_PATH]: join(root, "LICENSE") } });
  try {
    const tab = await own.open();
    await register(tab);
    await startFake({}, tab);
    const isWithout = await tab.evaluate(async () => {
      const serving = inpage.serveFromPage(engine, { offline: true });
      await serving.ready;
      await serving.keptOffline;
      const files = (await caches.keys()).map((name) => caches.open(name));
      const kept = await Promise.all((await Promise.all(files)).map((cache) => cache.keys()));
      return kept.flat().every(({ url }) => !url.includes("isolated-frame.html"));
    });
    assert.ok(isWithout);
    await own.stopServer();
    await tab.reload();
    await tab.waitForFunction(() => window.loaded);
    assert.deepEqual(await startFake({}, tab), inFrame);
  } finally {
    await own.close();
  }
});

describe("without a frame the engine runs in a plain worker", () => {
  const plainBecause = async (reason, found) => {
    assert.equal(found.isolation, "none");
    assert.match(found.isolationReason, reason);
    assert.equal(found.frames, 0);
    const text = await page.evaluate(async () => {
      const { choices } = await engine.completions.create({ model: "fake", prompt: "count:2" });
      return choices[0].text;
    });
    assert.equal(text, "é0 é1 ");
  };

  test("in other browsers, which are told what gives them threads", async () => {
    await register();
    await page.evaluate(() => {
      // Firefox and Safari do not have it either.
      Object.defineProperty(navigator, "userAgentData", { value: undefined });
    });
    for (const options of [{}, { isolatedFrame: {} }]) {
      const found = await startFake(options);
      assert.doesNotMatch(found.isolationReason, /isolatedFrame/);
      await plainBecause(/must be cross-origin isolated itself/, found);
    }
  });

  test("where there is no service worker", async () => {
    await plainBecause(/no service worker of inpage/, await startFake());
    const registrations = await page.evaluate(
      async () => (await navigator.serviceWorker.getRegistrations()).length,
    );
    assert.equal(registrations, 0);
  });

  test("where it is not wanted", async () => {
    await register();
    await plainBecause(/isolatedFrame is false/, await startFake({ isolatedFrame: false }));
    await plainBecause(/one thread/, await startFake({ threads: 1 }));
    await plainBecause(/the device is webgpu/, await startFake({ device: "webgpu" }));
  });

  test("where there is a GPU", async () => {
    await register();
    await page.evaluate(() => {
      const adapter = { info: { isFallbackAdapter: false } };
      Object.defineProperty(navigator, "gpu", { value: { requestAdapter: async () => adapter } });
    });
    await plainBecause(/there is a GPU/, await startFake({ device: "auto" }));
    assert.deepEqual(await startFake(), inFrame);
  });

  test("where the page's content security policy forbids frames", async () => {
    await register();
    await page.evaluate(() => {
      const meta = Object.assign(document.createElement("meta"), { content: "frame-src 'none'" });
      meta.httpEquiv = "Content-Security-Policy";
      document.head.append(meta);
    });
    await plainBecause(/content security policy/, await startFake());
  });

  test("where the service worker is another one, or an older one", async () => {
    await register(page, "/fixtures/foreign_service_worker.mjs");
    await plainBecause(/no service worker of inpage/, await startFake());
    await register(page, "/fixtures/old_service_worker.mjs?base=/v1");
    await plainBecause(/older version/, await startFake());
    const isolatedFrame = {
      serviceWorkerUrl: "/fixtures/old_service_worker.mjs",
      scope: "/",
      type: "module",
    };
    await plainBecause(/has no isolated frames/, await startFake({ isolatedFrame }));
  });

  test("where the service worker's script is missing", async () => {
    const isolatedFrame = { serviceWorkerUrl: "/absent.js" };
    await plainBecause(/absent\.js could not be registered/, await startFake({ isolatedFrame }));
  });

  test("where the browser does not isolate the frame", async () => {
    // The frame of a browser that does not know the header.
    await register(page, "/fixtures/not_isolating_service_worker.mjs?base=/v1");
    await plainBecause(/does not isolate/, await startFake());
  });

  test("where the worker's script is no file", async () => {
    await register();
    const workerUrl = await page.evaluate(async () => {
      const source = await (await fetch("/fixtures/fake_worker.mjs")).text();
      const absolute = source.replaceAll('"/dist/', `"${location.origin}/dist/`);
      return URL.createObjectURL(new Blob([absolute], { type: "text/javascript" }));
    });
    await plainBecause(/no file of this site/, await startFake({ workerUrl }));
  });
});
