//! `installLanguageModel` in a page beside a `LanguageModel` of the browser's own, and the error for a prompt that exceeds the
//! context. The engine chats without a model.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { CONTEXT_TOKENS } from "../node/fake_chat_engine.mjs";
import { startHarness } from "./harness.mjs";

describe("installing LanguageModel", () => {
  let harness;
  let page;

  before(async () => {
    const mounts = { "/fake_chat_engine.mjs": join(root, "tests/node/fake_chat_engine.mjs") };
    // The headless shell has another LanguageModel than browsers that people use.
    harness = await startHarness({ mounts, wholeBrowser: true });
  });
  after(() => harness?.close());
  beforeEach(async () => {
    page = await harness.open(undefined, "/plain");
    await page.evaluate(async () => {
      const { installLanguageModel } = await import("/dist/prompt_api/index.js");
      const { fakedEngine } = await import("/fake_chat_engine.mjs");
      Object.assign(window, {
        native: window.LanguageModel,
        install: () => installLanguageModel({ engine: fakedEngine([]).engine }),
        /** A LanguageModel of the browser whose `availability` is this function. */
        define: (availability) => {
          const value = class LanguageModel {};
          value.availability = availability;
          Object.defineProperty(window, "LanguageModel", {
            ...{ value, configurable: true, writable: true },
          });
          window.native = value;
        },
      });
    });
  });
  afterEach(() => page.context().close());

  for (const [name, availability] of [
    ["is unavailable", async () => "unavailable"],
    ["cannot tell its availability", () => Promise.reject(new Error("no service"))],
  ]) {
    test(`one that ${name} is replaced, and a session answers`, async () => {
      const found = await page.evaluate(async (text) => {
        define(new Function(`return ${text}`)());
        const isInstalled = await install();
        const session = await LanguageModel.create();
        return {
          isInstalled,
          isReplaced: LanguageModel !== native,
          isInstance: session instanceof LanguageModel,
          availability: await LanguageModel.availability(),
          answer: await session.prompt("Hi"),
        };
      }, availability.toString());
      const flags = { isInstalled: true, isReplaced: true, isInstance: true };
      assert.deepEqual(found, { ...flags, availability: "available", answer: "ok" });
    });
  }

  test("one that can run here stays", async () => {
    for (const state of ["available", "downloadable", "downloading"]) {
      const found = await page.evaluate(async (state) => {
        define(async () => state);
        return [await install(), LanguageModel === native];
      }, state);
      assert.deepEqual(found, [false, true], state);
    }
  });

  test("where the browser has none, it is set at once", async () => {
    const found = await page.evaluate(async () => {
      delete window.LanguageModel;
      const installing = install();
      const isSet = typeof LanguageModel.create === "function";
      return [isSet, await installing, await (await LanguageModel.create()).prompt("Hi")];
    });
    assert.deepEqual(found, [true, true, "ok"]);
  });

  test("that of this browser stays if it can run here, and is replaced otherwise", async (t) => {
    const { state, isInstalled, isReplaced } = await page.evaluate(async () => ({
      state: await native?.availability(),
      isInstalled: await install(),
      isReplaced: window.LanguageModel !== native,
    }));
    t.diagnostic(`availability of the browser's own LanguageModel: ${state ?? "there is none"}`);
    const expected = state === undefined || state === "unavailable";
    assert.deepEqual([isInstalled, isReplaced], [expected, expected]);
  });

  test("a prompt that exceeds the context is the platform's error, or one of its name", async (t) => {
    const found = await page.evaluate(async (count) => {
      define(async () => "unavailable");
      await install();
      const session = await LanguageModel.create();
      const long = Array(count).fill({ role: "user", content: "x" });
      const failure = async () => {
        const error = await session.prompt(long).catch((reason) => reason);
        const { name, requested, quota } = error;
        const isDOMException = error instanceof DOMException;
        return [error, { isDOMException, name, requested, quota }];
      };
      const Platform = window.QuotaExceededError;
      const [error, ofPlatform] = await failure();
      // Browsers without the class get a DOMException of the same name.
      delete window.QuotaExceededError;
      const [, fallback] = await failure();
      const answer = await session.prompt("Hi");
      const isPlatforms = Platform && error instanceof Platform;
      return { isPlatforms, ofPlatform, fallback, answer };
    }, CONTEXT_TOKENS + 10);
    const { isPlatforms, ofPlatform, fallback, answer } = found;
    t.diagnostic(`the browser ${isPlatforms === undefined ? "lacks" : "has"} QuotaExceededError`);
    assert.notEqual(isPlatforms, false);
    const error = {
      ...{ isDOMException: true, name: "QuotaExceededError" },
      ...{ requested: CONTEXT_TOKENS + 10, quota: CONTEXT_TOKENS },
    };
    assert.deepEqual(ofPlatform, error);
    assert.deepEqual(fallback, error);
    assert.equal(answer, "ok");
  });
});
