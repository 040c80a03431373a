//! The results of an engine about the GPU's kernels, kept for the next visit in Chromium's file system: when the next
//! engine gets it. The fake engine says what it has got. That the real one does less work then is tested in
//! tests/browser/second_load.test.mjs.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { startHarness } from "../browser/harness.mjs";
import { FaultServer } from "./fault_server.mjs";
import { randomBytes } from "./random.mjs";

const FOUND = "what was found out";

let harness;
let page;
let server;

before(async () => {
  harness = await startHarness();
});
after(() => harness?.close());
beforeEach(async () => {
  page = await harness.open();
  server = await new FaultServer({ bytes: randomBytes(10_000, 1), etag: '"one"' }).listen();
});
afterEach(async () => {
  await page.context().close();
  await server.close();
});

/** Loads the model with an engine that finds this out; gives what it was told of an earlier visit. */
const load = (found = FOUND, { model = `${server.origin}/m.gguf`, ...options } = {}) =>
  page.evaluate(
    async ([found, model, options]) => {
      const { value, message } = await caught(async () => {
        const engine = await startFake({ model, fakeKernels: found, ...options });
        const { kept } = await engine.info();
        await engine.dispose();
        return kept ?? "nothing";
      });
      return value ?? message;
    },
    [found, model, options],
  );

/** The note in the model's entry. With `change`, the source of a function, it is replaced by what that returns. */
const note = (change = "(text) => text") =>
  page.evaluate(async (change) => {
    const root = await navigator.storage.getDirectory();
    const all = await root.getDirectoryHandle("inpage-models");
    const notes = [];
    for await (const entry of all.values()) {
      for await (const [name, handle] of entry.entries()) {
        if (name !== "kernels") continue;
        const text = await (await handle.getFile()).text();
        notes.push(text);
        const changed = await new Function(`return ${change}`)()(text);
        const writable = await handle.createWritable();
        await writable.write(changed);
        await writable.close();
      }
    }
    return notes;
  }, change);

/** The source of a function that changes the parsed note and gives it its right hash. */
const forged = (change) => `async (text) => {
  const note = JSON.parse(text.slice(65));
  ${change};
  const changed = JSON.stringify(note);
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(changed));
  const hex = Array.from(new Uint8Array(digest), (b) => b.toString(16).padStart(2, "0")).join("");
  return hex + "\\n" + changed;
}`;

describe("what is known of the kernels", () => {
  test("is given to the engine of the next visit, until it finds out something else", async () => {
    assert.equal(await load(), "nothing");
    assert.equal(await load(), FOUND);
    assert.equal(await load("something else"), FOUND);
    assert.equal(await load(), "something else");
  });

  test("is not given to another model, and is deleted with its own", async () => {
    await load();
    assert.equal(await load(FOUND, { model: `${server.origin}/other.gguf` }), "nothing");
    await page.evaluate((url) => inpage.cache.delete(url), `${server.origin}/m.gguf`);
    assert.equal(await load(), "nothing");
  });

  test("is not believed if it is damaged, of another browser, or too old", async () => {
    const month_ms = 30 * 24 * 3600 * 1000;
    for (const change of [
      "() => ''",
      "(text) => text.slice(0, -1)",
      "(text) => text.replace('found', 'fount')",
      "(text) => 'f'.repeat(64) + text.slice(64)",
      forged("note.browser += ' '"),
      forged(`note.testedAtMs -= ${month_ms}`),
      forged("note.testedAtMs += 100_000"),
      forged("delete note.testedAtMs"),
      forged("delete note.kernels"),
    ]) {
      await load();
      assert.equal((await note(change)).length, 1);
      assert.equal(await load(), "nothing", change);
      // It was found out again.
      assert.equal(await load(), FOUND, change);
    }
    await note(forged(""));
    assert.equal(await load(), FOUND, "a note with its right hash");
    await note(forged(`note.testedAtMs -= ${month_ms - 60_000}`));
    assert.equal(await load(), FOUND, "an old note");
  });

  test("is kept when the engine is disposed while the storage still writes", async () => {
    assert.equal(await load(FOUND, { fakeSlowStorageMs: 300 }), "nothing");
    assert.equal(await load(), FOUND);
  });

  test("is neither kept nor read with cache: false", async () => {
    const model = { url: `${server.origin}/m.gguf`, cache: false };
    await load(FOUND, { model });
    assert.equal(await load(), "nothing");
    assert.equal(await load(FOUND, { model }), "nothing");
    assert.equal(await load(), FOUND);
  });

  test("is dropped when the device is lost during a load, and not when a load fails otherwise", async () => {
    await load();
    assert.match(await load(FOUND, { fakeLoadError: true }), /cannot be loaded/);
    assert.equal((await note()).length, 1);
    assert.match(await load(FOUND, { fakeLoadLoss: true }), /device was lost/);
    assert.equal((await note()).length, 0);
    assert.equal(await load(), "nothing");
  });

  test("is not given to the engine that takes over from a lost one", async () => {
    await load();
    const kept = await page.evaluate(
      async ([model, found]) => {
        const engine = await startFake({ model, fakeKernels: found });
        const first = (await engine.info()).kept;
        const body = { model: "fake", prompt: "lose:6:5", stream: true };
        const stream = await engine.completions.create({ ...body, model: "m" });
        for await (const _ of stream);
        const second = (await engine.info()).kept;
        await engine.dispose();
        return [first, second ?? "nothing"];
      },
      [`${server.origin}/m.gguf`, FOUND],
    );
    assert.deepEqual(kept, [FOUND, "nothing"]);
  });
});
