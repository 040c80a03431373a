//! `createEngine({ shared: true })`: tabs share one engine, and the next tab takes over when the one that runs it ends. The
//! engine is a fake one behind the real worker host.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { startHarness } from "./harness.mjs";

let harness;
let context;
let tabs;

before(async () => {
  harness = await startHarness();
});
after(() => harness?.close());
beforeEach(async () => {
  context = await harness.browser.newContext();
  tabs = [];
  for (let count = 0; count < 3; count++) tabs.push(await openTab());
});
afterEach(() => context.close());

/** Opens a tab that shares the engine. The first one runs it. */
async function openTab(options = {}) {
  const tab = await harness.open(context);
  await tab.evaluate(async (options) => {
    // A blob has no modification time, so the key is the same in all tabs.
    window.engine = await startFake({ shared: true, ...options });
  }, options);
  return tab;
}

/** The number of engine workers that `tab` runs. */
const workersOf = (tab) => tab.workers().length;

const complete = (tab, prompt, stream = false) =>
  tab.evaluate(
    ([prompt, stream]) =>
      caught(async () => {
        const answer = await engine.completions.create({ model: "fake", prompt, stream });
        if (!stream) return answer.choices[0].text;
        let text = "";
        for await (const chunk of answer) {
          text += chunk.choices[0].text;
          window.streaming = true;
        }
        return text;
      }),
    [prompt, stream],
  );

const info = (tab) => tab.evaluate(() => engine.info());
const count = (n) => Array.from({ length: n }, (_, i) => `é${i} `).join("");

test("one tab runs the engine, and all are answered", async () => {
  assert.deepEqual(tabs.map(workersOf), [1, 0, 0]);
  for (const [index, tab] of tabs.entries()) {
    assert.equal((await complete(tab, `count:${index + 2}`)).value, count(index + 2));
    assert.equal((await complete(tab, `count:${index + 2}`, true)).value, count(index + 2));
  }
  for (const tab of tabs) {
    const { produced, loads, active } = await info(tab);
    assert.deepEqual([produced, loads, active], [18, 1, 0]);
  }
});

test("other options create another engine", async () => {
  const other = await openTab({ endpoint: { maxQueue: 3 } });
  assert.equal(workersOf(other), 1);
  assert.equal((await complete(other, "count:2")).value, count(2));
  assert.equal((await info(tabs[0])).produced, 0);
});

test("errors and aborts pass between tabs", async () => {
  const { status, code } = await tabs[1].evaluate(() =>
    caught(() => engine.completions.create({ model: "absent", prompt: "x" })),
  );
  assert.deepEqual([status, code], [404, "model_not_found"]);
  for (const stream of [true, false]) {
    const name = await tabs[1].evaluate(async (stream) => {
      const controller = new AbortController();
      const body = { model: "fake", prompt: "count:5000:5", stream };
      const running = caught(async () => {
        const answer = await engine.completions.create(body, { signal: controller.signal });
        if (stream) for await (const _ of answer);
      });
      await until(async () => (await engine.info()).active === 1, "it runs");
      controller.abort();
      const { name } = await running;
      await until(async () => (await engine.info()).active === 0, "it stopped");
      return name;
    }, stream);
    assert.equal(name, "AbortError");
  }
});

test("a tab that is closed while it waits stops its generation", async () => {
  const running = complete(tabs[1], "count:5000:5", true).catch(() => {});
  await tabs[1].waitForFunction(() => window.streaming);
  await tabs[1].close();
  await running;
  await tabs[0].evaluate(() =>
    until(async () => (await engine.info()).active === 0, "it stopped", 20_000),
  );
});

for (const [how, end] of [
  ["is closed", (tab) => tab.close()],
  ["disposes its engine", (tab) => tab.evaluate(() => engine.dispose())],
  ["goes to another page", (tab) => tab.goto(`${harness.origin}/plain`)],
]) {
  test(`when the tab that runs it ${how}, another one takes over and requests continue`, async () => {
    const running = [
      complete(tabs[1], "count:300:5", true),
      complete(tabs[1], "count:300:5"),
      complete(tabs[2], "count:300:5", true),
    ];
    await Promise.all(tabs.slice(1).map((tab) => tab.waitForFunction(() => window.streaming)));
    await end(tabs[0]);
    for (const { value, message } of await Promise.all(running)) {
      assert.equal((value ?? message).slice(-200), count(300).slice(-200));
      assert.ok(value === count(300), "something is missing or repeated");
    }
    assert.deepEqual(tabs.slice(1).map(workersOf).sort(), [0, 1]);
    assert.equal((await info(tabs[1])).loads, 1);
    assert.equal((await info(tabs[2])).loads, 1);
  });
}

test("tabs share adapters, also after a tab has taken over", async () => {
  await tabs[1].evaluate(() =>
    engine.setLora([{ file: new File(["a"], "one.gguf", { lastModified: 1 }) }]),
  );
  assert.deepEqual((await info(tabs[0])).lora, ["one"]);
  await tabs[0].close();
  await tabs[2].evaluate(() => until(async () => (await engine.info()).lora, "it is loaded"));
  assert.deepEqual((await info(tabs[2])).lora, ["one"]);
});

test("served pages also share the engine", async () => {
  for (const tab of tabs) {
    await tab.evaluate(() => {
      window.serving = inpage.serveFromPage(engine);
      return serving.ready;
    });
  }
  const running = tabs[2].evaluate(async () => {
    const body = { model: "fake", prompt: "count:300:5", stream: true };
    let text = "";
    for await (const chunk of await client({ maxRetries: 0 }).completions.create(body)) {
      text += chunk.choices[0].text;
      window.streaming = true;
    }
    return text;
  });
  await tabs[2].waitForFunction(() => window.streaming);
  await tabs[0].close();
  assert.ok((await running) === count(300), "something is missing or repeated");
});
