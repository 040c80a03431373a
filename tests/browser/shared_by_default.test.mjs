//! Engines whose model is named by URL are shared without being asked to: when they are, when they are not, and that tabs do not
//! disturb each other. The engine is a fake one behind the real worker host.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { startHarness } from "./harness.mjs";

/** The embedded model's file; the fake engine reads any bytes. */
const MODEL = { url: "/models/tales.gguf", id: "fake" };

let harness;
let context;

before(async () => {
  harness = await startHarness();
});
after(() => harness?.close());
beforeEach(async () => {
  context = await harness.browser.newContext();
});
afterEach(() => context.close());

const open = () => harness.open(context);

/** Starts an engine in a tab, without saying whether it is shared. Gives the error, if there is one. */
const start = (tab, options = {}) =>
  tab.evaluate(
    ([model, options]) =>
      caught(async () => {
        window.progress = [];
        const onProgress = (event) => progress.push(event);
        window.engine = await startFake({ model, shared: undefined, onProgress, ...options });
      }),
    [MODEL, options],
  );

async function openWith(options) {
  const tab = await open();
  const { message } = await start(tab, options);
  assert.equal(message, undefined);
  return tab;
}

const workersOf = (tab) => tab.workers().length;
const info = (tab) => tab.evaluate(() => engine.info());
const count = (n) => Array.from({ length: n }, (_, i) => `é${i} `).join("");
const complete = (tab, prompt) =>
  tab.evaluate(
    (prompt) =>
      caught(async () => {
        let text = "";
        const body = { model: "fake", prompt, stream: true };
        for await (const chunk of await engine.completions.create(body)) {
          text += chunk.choices[0].text;
          window.streaming = true;
        }
        return text;
      }),
    prompt,
  );
/** Sets adapters with these names. */
const setLora = (tab, names) =>
  tab.evaluate(
    (names) =>
      caught(() =>
        engine.setLora(
          names.map((name) => ({ file: new File(["a"], `${name}.gguf`, { lastModified: 1 }) })),
        ),
      ),
    names,
  );

describe("an engine is shared", () => {
  test("by tabs that name the same model with the same options", async () => {
    const tabs = [
      await openWith(),
      await openWith(),
      await openWith({ endpoint: { maxQueue: 3 } }),
    ];
    assert.deepEqual(tabs.map(workersOf), [1, 0, 1]);
    for (const tab of tabs) {
      assert.equal((await complete(tab, "count:3")).value, count(3));
      assert.equal((await info(tab)).shared, true);
    }
    assert.equal((await info(tabs[1])).produced, 6);
  });

  test("by two engines of one page, each of which can be disposed", async () => {
    const tab = await openWith();
    await tab.evaluate(() => {
      window.first = engine;
    });
    await start(tab);
    assert.equal(workersOf(tab), 1);
    await tab.evaluate(() => first.dispose());
    assert.equal((await complete(tab, "count:3")).value, count(3));
    assert.equal((await info(tab)).loads, 1);
  });

  test("not where the app asks for its own, or gives a local file", async () => {
    const tabs = [await openWith(), await openWith({ shared: false })];
    const local = await open();
    await local.evaluate(async () => {
      window.engine = await startFake({ shared: undefined });
    });
    tabs.push(local);
    assert.deepEqual(tabs.map(workersOf), [1, 1, 1]);
    for (const [index, shared] of [true, false, false].entries()) {
      assert.equal((await info(tabs[index])).shared, shared);
    }
  });

  test("not where there are no Web Locks", async () => {
    const tabs = [await open(), await open()];
    for (const tab of tabs) {
      await tab.evaluate(() => Object.defineProperty(navigator, "locks", { value: undefined }));
      assert.equal((await start(tab)).message, undefined);
      assert.equal((await info(tab)).shared, false);
    }
    assert.deepEqual(tabs.map(workersOf), [1, 1]);
  });
});

describe("an engine starts", () => {
  test("where Web Locks are denied", async () => {
    const tab = await open();
    await tab.evaluate(() => {
      const denied = () => Promise.reject(new DOMException("denied", "SecurityError"));
      Object.defineProperty(navigator.locks, "request", { value: denied });
    });
    assert.equal((await start(tab)).message, undefined);
    assert.equal((await complete(tab, "count:3")).value, count(3));
  });

  test("again for a tab that joins one whose load has failed", async () => {
    const [first, second] = [await open(), await open()];
    const options = { fakeFailingLoads: [0] };
    await start(first, { ...options, background: true });
    const { message } = await first.evaluate(() => caught(() => engine.ready));
    assert.match(message, /cannot be loaded/);
    assert.equal((await start(second, options)).message, undefined);
    for (const tab of [first, second]) {
      assert.equal((await complete(tab, "count:3")).value, count(3));
    }
    assert.deepEqual([first, second].map(workersOf), [1, 0]);
  });
});

describe("a tab", () => {
  test("that joins a loaded engine is told that it is ready", async () => {
    await openWith();
    const tab = await openWith();
    const phases = await tab.evaluate(() => progress.map(({ phase }) => phase));
    assert.deepEqual(phases, ["ready"]);
  });

  test("that aborts its load does not end that of another", async () => {
    const [first, second] = [await open(), await open()];
    const loading = first.evaluate(
      (model) =>
        caught(() => {
          window.controller = new AbortController();
          const { signal } = controller;
          return startFake({ model, shared: undefined, fakeLoadMs: 2000, signal });
        }),
      MODEL,
    );
    await first.waitForFunction(async () => {
      const { held } = await navigator.locks.query();
      return held.some(({ name }) => name.startsWith("inpage-engine"));
    });
    const other = start(second, { fakeLoadMs: 2000 });
    await second.waitForFunction(async () => {
      const { pending } = await navigator.locks.query();
      return pending.some(({ name }) => name.startsWith("inpage-engine"));
    });
    await first.evaluate(() => controller.abort());
    assert.equal((await loading).name, "AbortError");
    assert.equal((await other).message, undefined);
    assert.equal((await complete(second, "count:3")).value, count(3));
    assert.deepEqual([first, second].map(workersOf), [0, 1]);
  });

  test("whose load fails gets the reason, and so do the others", async () => {
    const tabs = [await open(), await open()];
    const results = await Promise.all(tabs.map((tab) => start(tab, { fakeLoadError: true })));
    for (const { code, message } of results) {
      assert.equal(code, "model_not_loaded");
      assert.match(message, /cannot be loaded/);
    }
  });

  test("whose worker cannot be created gets the reason", async () => {
    const { message, value } = await start(await open(), {
      workerUrl: "https://other.example/worker.mjs",
    });
    assert.equal(value, undefined);
    assert.match(message, /script https:\/\/other\.example\/worker\.mjs could not be started/);
  });

  test("whose timers do not run, as in hidden tabs, still gets long answers", async () => {
    await openWith();
    const tab = await open();
    await tab.evaluate(() => {
      window.setInterval = () => 0;
    });
    await start(tab);
    // Longer than the engine waits for a sign of life.
    const { value, message } = await tab.evaluate(() =>
      caught(async () => {
        const body = { model: "fake", prompt: "count:120:100" };
        return (await engine.completions.create(body)).choices[0].text;
      }),
    );
    assert.equal(value, count(120), message);
  });

  test("that no longer answers is replaced, also if it was not told that it is frozen", async () => {
    const [first, second] = [await openWith(), await openWith()];
    const session = await context.newCDPSession(first);
    await session.send("Debugger.enable");
    const paused = new Promise((resolve) => session.once("Debugger.paused", resolve));
    await session.send("Debugger.pause");
    first.evaluate(() => 0).catch(() => {});
    await paused;
    assert.equal((await complete(second, "count:9")).value, count(9));
    assert.equal(workersOf(second), 1);
    await session.send("Debugger.resume");
    assert.equal((await complete(first, "count:3")).value, count(3));
    while (workersOf(first) > 0) await first.waitForTimeout(50);
    assert.equal((await info(first)).produced, 12);
  });
});

describe("adapters", () => {
  test("that differ from the start make another engine", async () => {
    const tabs = [await openWith(), await open()];
    const lora = [{ url: "/models/tales.gguf", scale: 0.5 }];
    await start(tabs[1], { lora });
    assert.deepEqual(tabs.map(workersOf), [1, 1]);
    assert.deepEqual((await info(tabs[0])).lora, []);
    assert.deepEqual((await info(tabs[1])).lora, ["tales"]);
  });

  test("that the running tab sets are for this tab, which keeps its engine", async () => {
    const [first, second] = [await openWith(), await openWith()];
    const running = [complete(first, "count:100:5"), complete(second, "count:100:5")];
    await Promise.all([first, second].map((tab) => tab.waitForFunction(() => window.streaming)));
    assert.equal((await setLora(first, ["one"])).message, undefined);
    for (const { value, message } of await Promise.all(running)) {
      assert.equal(value, count(100), message);
    }
    const [own, other] = [await info(first), await info(second)];
    assert.deepEqual([own.lora, own.loads, own.shared], [["one"], 1, false]);
    assert.deepEqual([other.lora, other.loads, other.shared], [[], 1, true]);
    assert.deepEqual([first, second].map(workersOf), [1, 1]);
    assert.equal((await setLora(first, ["one", "two"])).message, undefined);
    assert.deepEqual((await info(first)).lora, ["one", "two"]);
    assert.deepEqual((await info(second)).lora, []);
  });

  test("that another tab sets are for that tab, which gets an engine of its own", async () => {
    const [first, second] = [await openWith(), await openWith()];
    const running = complete(second, "count:200:5");
    await second.waitForFunction(() => window.streaming);
    const changed = setLora(second, ["one"]);
    const { value, message } = await running;
    assert.equal(value, count(200), message);
    assert.equal((await changed).message, undefined);
    assert.deepEqual((await info(second)).lora, ["one"]);
    assert.equal((await info(second)).shared, false);
    assert.equal((await complete(second, "count:3")).value, count(3));
    const { lora, produced } = await info(first);
    assert.deepEqual([lora, produced], [[], 200]);
    await second.evaluate(() => engine.dispose());
    assert.equal((await complete(first, "count:3")).value, count(3));
  });

  test("that do not fit leave the engine shared", async () => {
    const [first, second] = [await openWith(), await openWith()];
    const { message } = await second.evaluate(() =>
      caught(() => engine.setLora([{ file: new File(["a"], "one.gguf"), scale: 666 }])),
    );
    assert.match(message, /does not fit/);
    assert.equal((await info(second)).shared, true);
    assert.equal((await complete(second, "count:3")).value, count(3));
    assert.deepEqual([first, second].map(workersOf), [1, 0]);
  });
});
