//! The second load of a model with the real engine: what the first one found out about the GPU's kernels is believed, but only
//! where it applies. What counts is which work is done, not how long it takes (`scripts/second_load.mjs` measures that).
//! The conditions under which it is kept are tested in tests/delivery/kept_kernels.test.mjs.

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { startHarness, wasmIsBuilt } from "./harness.mjs";

describe("a second load", { skip: !wasmIsBuilt && "the wasm module is not built" }, () => {
  let harness;
  /** A profile in which the embedded model was loaded once, and what that load did. */
  let context;
  let first;

  before(async () => {
    harness = await startHarness({ wholeBrowser: true });
    ({ context, result: first } = await load());
  });
  after(() => harness?.close());

  /** Loads the embedded model in a new tab; gives the counts at its end, and then its answer to a long prompt. */
  async function load({ inContext, options = {} } = {}) {
    const page = await harness.open(inContext);
    const result = await page.evaluate(async (options) => {
      const channel = new BroadcastChannel("webgpu-counts");
      const counts = () =>
        new Promise((resolve) => {
          channel.onmessage = ({ data }) => data.counts && resolve(data.counts);
          channel.postMessage({ question: 1 });
        });
      const workerUrl = "/fixtures/counting_worker.mjs";
      const result = await caught(async () => {
        const engine = await inpage.createEngine({ device: "webgpu", workerUrl, ...options });
        const loaded = await counts();
        const prompt = "Once upon a time there was a small bear who lived in a forest. ".repeat(3);
        const body = { model: "default", prompt, max_tokens: 12, temperature: 0, logprobs: 2 };
        const { choices } = await engine.completions.create(body);
        const answered = await counts();
        await engine.dispose();
        return { loaded, choices, answered };
      });
      return result.value ?? result;
    }, options);
    const context = page.context();
    await page.close();
    return { context, result };
  }

  /** Calls `change` with the note that a load has kept: its hash and its text; what it returns is stored. */
  const changeNote = async (change) => {
    const page = await harness.open(context);
    const found = await page.evaluate(async (change) => {
      const root = await navigator.storage.getDirectory();
      const all = await root.getDirectoryHandle("inpage-models");
      const notes = [];
      for await (const entry of all.values()) {
        try {
          const handle = await entry.getFileHandle("kernels");
          const text = await (await handle.getFile()).text();
          notes.push(text);
          const changed = await new Function("text", `return (${change})(text)`)(text);
          if (changed === undefined) continue;
          const writable = await handle.createWritable();
          await writable.write(changed);
          await writable.close();
        } catch (error) {
          if (error.name !== "NotFoundError") throw error;
        }
      }
      return notes;
    }, change.toString());
    await page.close();
    return found;
  };
  const readNotes = () => changeNote(() => undefined);

  /** A note with the right hash, whose parts `change` has changed: the note, what Rust reads of it, and its conditions. */
  const forged = (change = "") => `async (text) => {
    const note = JSON.parse(text.slice(65));
    const choice = JSON.parse(note.kernels);
    const conditions = JSON.parse(choice.conditions);
    ${change};
    choice.conditions = JSON.stringify(conditions);
    note.kernels = JSON.stringify(choice);
    const changed = JSON.stringify(note);
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(changed));
    const hex = Array.from(new Uint8Array(digest), (b) => b.toString(16).padStart(2, "0")).join("");
    return hex + "\\n" + changed;
  }`;

  const assertTests = ({ loaded, message }) => {
    assert.ok(loaded, message);
    assert.ok(loaded.dispatches > 0, "the self-test runs");
    assert.ok(loaded.pipelinesAhead >= first.loaded.pipelinesAhead, "all kernels are compiled");
  };
  const assertBelieves = ({ loaded, message }) => {
    assert.ok(loaded, message);
    assert.equal(loaded.dispatches, 0, "nothing is tested or measured");
    assert.equal(loaded.pipelines, 0);
  };

  // Each test begins with the note of the first load.
  let note;
  beforeEach(async () => {
    if (note === undefined) [note] = await readNotes();
    else await changeNote(`() => ${JSON.stringify(note)}`);
  });

  test("runs no self-test, and answers the same", async () => {
    assertTests(first);
    const { result } = await load({ inContext: context });
    assertBelieves(result);
    assert.deepEqual(result.choices, first.choices);
    // The kernels of prompts: compiled at once, and waited for by the prompt.
    const { loaded, answered } = result;
    assert.equal(answered.pipelines, 0);
    assert.ok(answered.pipelinesAhead > 0 && loaded.pipelinesAhead < first.loaded.pipelinesAhead);
    assert.deepEqual(await readNotes(), [note], "the note stays as it is");
  });

  // Other conditions, and invalid choices, are tested in src/runtime/kernel_choice.rs.
  test("believes nothing of another device", async () => {
    await changeNote(forged());
    assertBelieves((await load({ inContext: context })).result);
    await changeNote(forged('conditions.device.adapter = "another"'));
    const { result } = await load({ inContext: context });
    assertTests(result);
    assert.deepEqual(result.choices, first.choices);
    const [renewed] = await readNotes();
    assert.equal(withoutTime(renewed), withoutTime(note));
  });

  test("with other load options tests again", async () => {
    const options = { load: { kvFormat: "f32" } };
    assertTests((await load({ inContext: context, options })).result);
    assertBelieves((await load({ inContext: context, options })).result);
  });
});

const withoutTime = (note) => note?.slice(65).replace(/"testedAtMs":\d+/, "");
