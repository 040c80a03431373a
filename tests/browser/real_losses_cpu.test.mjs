//! Workers in an endless loop with the real engine on the CPU: the text is the same as without them.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startHarness, wasmIsBuilt } from "./harness.mjs";
import { assertSame, body, openLosing, through } from "./losing_engine.mjs";

describe("the real engine on the CPU", {
  skip: !wasmIsBuilt && "the wasm module is not built",
}, () => {
  // The CPU computes 60 tokens faster than a message arrives. The engine pauses after 256 unread ones.
  const maxTokens = 400;
  let harness;
  let page;
  before(async () => {
    harness = await startHarness();
    page = await openLosing(harness, "cpu");
  });
  after(() => harness?.close());

  test('streams the same text through "spin"', async () => {
    const long = { ...body, max_tokens: maxTokens / 2 };
    const undisturbed = await page.evaluate((body) => streamed(body), long);
    assertSame(await through("spin", page, { body: long }), { streamed: undisturbed }, maxTokens);
  });

  test("continues a stream without a seed and with logprobs", async () => {
    const { seed, n, ...unseeded } = body;
    const fields = {
      ...unseeded,
      max_tokens: maxTokens,
      logprobs: 1,
      return_tokens_as_token_ids: true,
    };
    const { ids, tokens, logprobs, isNew } = await page.evaluate(async (fields) => {
      let [tokens, count] = [0, 0];
      const ids = new Set();
      const logprobs = [];
      const { workers } = window;
      for await (const chunk of await engine.completions.create({ ...fields, stream: true })) {
        ids.add(chunk.id);
        for (const choice of chunk.choices) {
          tokens += choice.token_ids.length;
          logprobs.push(...choice.logprobs.text_offset);
        }
        if (++count === 20) await window.fault("spin");
      }
      return { ids: ids.size, tokens, logprobs, isNew: window.workers > workers };
    }, fields);
    assert.equal(ids, 1);
    assert.equal(tokens, maxTokens);
    assert.ok(isNew, "another worker has continued it");
    assert.deepEqual(
      logprobs,
      [...logprobs].sort((a, b) => a - b),
      "offsets continue where they were",
    );
  });
});
