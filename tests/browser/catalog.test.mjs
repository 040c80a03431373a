//! Models of the catalog by their names, and loads where memory is short, in one page with the real engine on the CPU device; attempts and
//! budgets by themselves; a tab that ends while it loads.

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { root } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { startHarness, wasmIsBuilt } from "./harness.mjs";

const load = (file) => import(pathToFileURL(join(root, "www/dist", file)).href);
const { attemptsOf } = await load("models/attempts.js");
const { deviceBudgetBytes } = await load("device_budget.js");
const { catalog, recommendModels } = await load("catalog/index.js");
const { resolveModel } = await load("options/model.js");

const IPHONE =
  "Mozilla/5.0 (iPhone; CPU iPhone OS 26_0 like Mac OS X) AppleWebKit/605.1.15 Safari/604.1";
const IPAD = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Safari/605.1.15";
const PHONE = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 Chrome/140.0.0.0 Mobile";
const LAPTOP = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0.0.0";

test("phones and tablets have budgets, other devices none", () => {
  for (const [hints, gib] of [
    [{ userAgent: IPHONE }, 1],
    [{ userAgent: IPAD, maxTouchPoints: 5 }, 1],
    [{ userAgent: IPAD, maxTouchPoints: 0 }, undefined],
    [{ userAgent: PHONE, deviceMemory: 8 }, 2],
    [{ userAgent: PHONE }, 1],
    [{ userAgent: LAPTOP, deviceMemory: 8 }, undefined],
  ]) {
    assert.equal(deviceBudgetBytes(hints), gib && gib * 2 ** 30, JSON.stringify(hints));
  }
});

describe("attempts", () => {
  const A = "https://a.example/a.gguf";
  const B = "https://a.example/b.gguf";
  const ways = (options, crashes = [], fits = false) =>
    attemptsOf(options, crashes, fits).map(({ model, load, options }) => [
      ...[model, options.model, load.kvFormat, load.contextTokens, options.load.kvPoolTokens],
    ]);
  const all = (index, model) => [
    [index, model, undefined, undefined, undefined],
    [index, model, "q8_0", undefined, undefined],
    [index, model, "q8_0", 2048, 2048],
    [index, model, "q8_0", 1024, 1024],
  ];

  test("make memory fit, and leave what the app has chosen", () => {
    assert.deepEqual(ways({ model: A }), all(0, A).slice(0, 1));
    assert.deepEqual(ways({ model: A }, [], true), all(0, A));
    const chosen = { model: A, load: { kvFormat: "f32", contextTokens: 512 } };
    assert.deepEqual(ways(chosen, [], true), [[0, A, undefined, undefined, undefined]]);
    assert.equal(attemptsOf(chosen, [], true)[0].options.load.kvFormat, "f32");
  });

  test("go on with other models, which have options of their own", () => {
    const other = { model: B, device: "cpu", load: { contextTokens: 100 } };
    const options = { model: A, projector: "https://a.example/p.gguf", fallbackModels: [other, A] };
    const attempts = attemptsOf(options, [], false);
    assert.deepEqual(
      attempts.map(({ options: { model, device, projector, load } }) => [
        ...[model, device, projector !== undefined, load.contextTokens],
      ]),
      [
        [A, undefined, true, undefined],
        [B, "cpu", false, 100],
        [A, undefined, false, undefined],
      ],
    );
  });

  test("after a load that ended with its tab are others", () => {
    const HOUR_MS = 3_600_000;
    const crash = (loads, hoursAgo = 0, loadedSince = false) => {
      return { loads, atMs: Date.now() - hoursAgo * HOUR_MS, loadedSince };
    };
    assert.deepEqual(ways({ model: A }, [crash(1)]), all(0, A).slice(1));
    assert.deepEqual(ways({ model: A }, [crash(9)]), all(0, A).slice(3));
    const options = { model: A, fallbackModels: [B] };
    const onlyB = all(1, B).slice(0, 1);
    assert.deepEqual(ways(options, [crash(1), undefined]), onlyB);
    assert.deepEqual(ways(options, [crash(1), crash(1)]), all(1, B).slice(1));
    // It is tried again later, or if it has been loaded since, with less memory.
    assert.deepEqual(ways(options, [crash(1, 23)]), onlyB);
    assert.deepEqual(ways(options, [crash(1, 25)]), [...all(0, A).slice(1), ...onlyB]);
    assert.deepEqual(ways(options, [crash(2, 25)]), onlyB);
    assert.deepEqual(ways(options, [crash(2, 49)]), [...all(0, A).slice(2), ...onlyB]);
    assert.deepEqual(ways(options, [crash(1, 0, true)]), [...all(0, A).slice(1), ...onlyB]);
  });

  test("with options that cannot be used are refused before the first one", () => {
    assert.throws(() => attemptsOf({ model: A, fallbackModels: ["a/b"] }, [], false), /repository/);
    assert.throws(() => attemptsOf({ model: A, fallbackModels: "x" }, [], false), /an array/);
    const other = { model: B, lora: [{}] };
    assert.throws(() => attemptsOf({ model: A, fallbackModels: [other] }, [], false), /lora\[0\]/);
  });
});

describe("recommendModels", () => {
  test("has fitting models first, with the basis of each estimate", async () => {
    const measured = { model: "qwen3-0.6b", tokensPerSecond: 50 };
    const found = await recommendModels({ task: "chat", memoryBudgetBytes: 3e9, measured });
    const chats = catalog.filter(({ tasks }) => tasks.includes("chat"));
    assert.equal(found.length, chats.length);
    const firstMisfit = found.findIndex(({ fits }) => !fits);
    assert.ok(firstMisfit > 10 && found.slice(firstMisfit).every(({ fits }) => !fits));
    for (const { model, fits, obstacles, basis } of found) {
      assert.equal(fits, model.memory.context4k <= 3e9, model.name);
      if (!fits) assert.match(obstacles[0], /needs .* GB of memory; 3 GB are allowed/);
      assert.match(basis, /50 tokens per second of qwen3-0\.6b measured here$/);
    }
    const itself = found.find(({ model }) => model.name === "qwen3-0.6b");
    assert.equal(itself.tokensPerSecond, 50);
    const fast = found.filter(({ fits, tokensPerSecond }) => fits && tokensPerSecond >= 10);
    assert.deepEqual(fast, found.slice(0, fast.length));
  });

  test("says what is assumed, and refuses what it cannot use", async () => {
    const [first] = await recommendModels({ task: "code", device: "cpu", contextTokens: 16_384 });
    assert.match(first.basis, /GB\/s assumed for \d+ threads? of a CPU$/);
    const [embeds] = await recommendModels({ task: "embedding", maxBytes: 2e8, language: "en" });
    assert.equal(embeds.tokensPerSecond, undefined);
    const ranking = await recommendModels({ task: "rerank", memoryBudgetBytes: 3e9 });
    assert.ok(ranking.length >= 2 && ranking.every(({ fits }) => fits));
    assert.ok(ranking.every(({ tokensPerSecond }) => tokensPerSecond === undefined));
    await assert.rejects(recommendModels({ device: "npu" }), TypeError);
    const measured = { model: "none", tokensPerSecond: 1 };
    await assert.rejects(recommendModels({ measured }), /the catalog has no "none"/);
  });
});

const skip = !wasmIsBuilt && "skipped: the wasm module is not built";

describe("in a page", { skip }, () => {
  const NAME = "smollm2-135m-instruct";
  let harness;
  let page;

  before(async () => {
    const folder = temporaryFolder("inpage-hub-");
    const { model } = catalog.find(({ name }) => name === NAME).files;
    const path = new URL(resolveModel(model).location.urls[0]).pathname.slice(1);
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    copyFileSync(join(root, "www/models/tales.gguf"), join(folder, path));
    harness = await startHarness({ mounts: { "/hub/": `${folder}/` } });
    page = await openPage();
  });
  after(() => harness?.close());

  async function openPage(context) {
    const opened = await harness.open(context);
    await opened.evaluate(() => {
      Object.assign(window, {
        options: (given) => ({
          ...{ device: "cpu", threads: 1, shared: false },
          ...{ hub: { baseURL: `${location.origin}/hub/` }, ...given },
        }),
        // The report of an engine after a completion, or its error.
        run: (given) =>
          caught(async () => {
            const engine = await inpage.createEngine(options(given));
            try {
              const { choices } = await engine.completions.create({
                model: "default",
                prompt: "Once",
                max_tokens: 3,
              });
              const { model, kvFormat, contextTokens, fitted, previousLoadCrashed } =
                await engine.info();
              const wrote = choices[0].text.length > 0;
              return { model, kvFormat, contextTokens, fitted, previousLoadCrashed, wrote };
            } finally {
              await engine.dispose();
            }
          }),
      });
    });
    return opened;
  }

  const run = (given) => page.evaluate((options) => run(options), given);
  /** The memory that the embedded model needs with these load options. */
  const needs = (load) =>
    page.evaluate(
      async (load) => (await inpage.inspectModel("embedded", { load })).model.memory.totalBytes,
      load,
    );

  test("createEngine takes a name", async () => {
    const { value } = await run({ model: NAME });
    assert.deepEqual([value.model, value.wrote, value.fitted], [NAME, true, undefined]);
    const loaded = await page.evaluate(
      () =>
        performance.getEntriesByType("resource").filter(({ name }) => name.includes("catalog"))
          .length,
    );
    assert.equal(loaded, 1, "requests for the catalog");
  });

  test("a name that the catalog does not have is refused with similar ones", async () => {
    const error = await run({ model: "smollm2-135m" });
    assert.equal(error.code, "invalid_option");
    assert.match(error.message, /no model "smollm2-135m".*smollm/);
  });

  test("a KV cache in q8_0 and a shorter context make a model fit", async () => {
    const model = "embedded";
    const [plain, small, shorter] = await Promise.all([
      ...[needs({}), needs({ kvFormat: "q8_0" })],
      needs({ kvFormat: "q8_0", contextTokens: 2048, kvPoolTokens: 2048 }),
    ]);
    assert.ok(shorter < small && small < plain, `${shorter} ${small} ${plain}`);
    const fit = (memoryBudgetBytes) => run({ model, memoryBudgetBytes, fitMemory: true });
    assert.equal((await fit(plain)).value.fitted, undefined);
    const { value } = await fit(plain - 1);
    assert.deepEqual([value.kvFormat, value.wrote], ["q8_0", true]);
    assert.deepEqual([value.fitted.kvFormat, value.fitted.fallback], ["q8_0", 0]);
    assert.match(value.fitted.reason, /out of memory/);
    assert.equal((await fit(small - 1)).value.fitted.contextTokens, 2048);
    assert.equal((await fit(1000)).code, "out_of_memory");
    assert.equal((await run({ model, memoryBudgetBytes: plain - 1 })).code, "out_of_memory");
  });

  test("fallbackModels are tried when memory does not suffice", async () => {
    const memoryBudgetBytes = (await needs({})) - 1;
    const smaller = { model: "embedded", load: { kvPoolTokens: 512 } };
    const { value } = await run({ model: NAME, fallbackModels: [smaller], memoryBudgetBytes });
    assert.deepEqual([value.model, value.wrote], ["tales", true]);
    assert.equal(value.fitted.fallback, 1);
    const absent = `${harness.origin}/absent.gguf`;
    const error = await run({ model: absent, fallbackModels: [smaller] });
    assert.match(error.message, /absent\.gguf/, "another cause is no reason for another model");
    const several = { models: { a: "embedded" }, fallbackModels: ["embedded"] };
    assert.match((await run(several)).message, /fallbackModels is for an engine with one model/);
  });

  test("requests wait for the attempt that works", async () => {
    const memoryBudgetBytes = (await needs({})) - 1;
    const states = await page.evaluate(async (memoryBudgetBytes) => {
      const engine = await inpage.createEngine(
        options({ model: "embedded", memoryBudgetBytes, fitMemory: true, background: true }),
      );
      const states = [];
      engine.addEventListener("statechange", ({ state }) => states.push(state));
      const { choices } = await engine.completions.create({
        model: "default",
        prompt: "Once",
        max_tokens: 3,
      });
      await engine.dispose();
      return [...states, choices.length];
    }, memoryBudgetBytes);
    assert.deepEqual(states, ["ready", "disposed", 1]);
  });

  test("a phone has a budget of its own", async () => {
    const context = await harness.browser.newContext({ userAgent: IPHONE });
    const phone = await openPage(context);
    const load = { kvPoolTokens: 1_000_000, kvFormat: "f16" };
    const report = (given) => phone.evaluate((options) => run(options), given);
    assert.equal((await report({ model: "embedded", load })).code, "out_of_memory");
    assert.equal((await report({ model: "embedded" })).value.wrote, true);
    await context.close();
  });

  test("a load that ended with its tab is remembered for a week, or until one succeeds as the app wanted it", async () => {
    const context = await harness.browser.newContext();
    const begun = await openPage(context);
    const model = { url: "/models/tales.gguf", id: "t" };
    // In a tab that is closed or left nothing has crashed.
    const begin = (tab) =>
      tab.evaluate(async (model) => {
        void startFake({ model, device: "cpu", fakeLoadMs: 60_000 }).catch(() => {});
        const isMark = ([name, text]) => /^inpage-load /.test(name) && text.includes("tales");
        const marks = Object.entries(localStorage).filter(isMark).length;
        const hasOneMore = () => Object.entries(localStorage).filter(isMark).length > marks;
        await until(hasOneMore, "it is marked");
      }, model);
    const crashed = (tab) =>
      tab.evaluate((model) => inpage.previousLoadCrashed({ model, device: "cpu" }), model);
    await begin(begun);
    const second = await openPage(context);
    assert.equal(await crashed(second), undefined, "another tab loads it");
    await begun.reload();
    assert.equal(await crashed(second), undefined, "the tab was left");

    const crashes = async (tab, loads) => {
      const session = await context.newCDPSession(tab);
      session.send("Page.crash").catch(() => {});
      await tab.waitForEvent("crash");
      await second.waitForFunction(
        async ([model, loads]) =>
          (await inpage.previousLoadCrashed({ model, device: "cpu" }))?.loads === loads,
        [model, loads],
      );
    };
    // Two tabs load at the same time: each has a mark of its own.
    const third = await openPage(context);
    await begin(begun);
    await begin(third);
    await crashes(begun, 1);
    const report = (given) => second.evaluate((options) => run(options), given);
    const other = await report({ model, fallbackModels: [NAME] });
    assert.deepEqual([other.value.model, other.value.fitted.fallback], [NAME, 1]);
    assert.equal(other.value.previousLoadCrashed.loads, 1);
    assert.match(other.value.fitted.reason, /ended with its tab/);

    const later = (days) =>
      second.evaluate(
        async ([model, ms]) => {
          const now = Date.now;
          Date.now = () => now() + ms;
          try {
            return await inpage.previousLoadCrashed({ model, device: "cpu" });
          } finally {
            Date.now = now;
          }
        },
        [model, days * 24 * 3_600_000],
      );
    assert.equal((await later(6)).loads, 1);

    // Success with less memory is repeated, also where other models are left.
    for (const options of [{ model }, { model, fallbackModels: [NAME] }]) {
      const { value } = await report(options);
      assert.deepEqual([value.fitted.kvFormat, value.fitted.fallback], ["q8_0", 0]);
      assert.equal(value.previousLoadCrashed.loads, 1);
      assert.equal(await crashed(second), undefined, "it was loaded since");
    }
    await crashes(third, 2);
    assert.equal(await later(8), undefined, "it is forgotten after a week");
    assert.equal(await crashed(second), undefined, "it is not stored any more");
    assert.equal((await report({ model })).value.fitted, undefined);
    await context.close();
  });
});
