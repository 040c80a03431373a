//! SmolLM2-135M-Instruct in a page on the GPU: the greedy tokens of llama.cpp. A file of its own, as page_gpu.test.mjs.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startHarness, wasmIsBuilt } from "../browser/harness.mjs";
import { APART, provideRealModels, references } from "./models.mjs";
import { MODEL_URL, openSmolLm2 } from "./smollm2_page.mjs";

const models = await provideRealModels();
const reason = models.reason ?? (!wasmIsBuilt && "the wasm module is not built");
const { smolLm2 } = references();

describe("greedy tokens of SmolLM2 in a page, on the GPU", {
  skip: reason && `skipped: ${reason}`,
}, () => {
  let harness;
  let page;
  before(async () => {
    harness = await startHarness({ mounts: { [MODEL_URL]: models.smolLm2 }, isolated: true });
    page = await openSmolLm2(harness, "webgpu");
    assert.equal(await page.evaluate(async () => (await engine.info()).device), "webgpu");
  });
  after(() => harness?.close());

  test("each greedy token of llama.cpp is the best one, unless the second is close", async () => {
    const ranks = await page.evaluate(async (continuations) => {
      const all = [];
      for (const { ids, greedy } of continuations) {
        const body = { model: "default", prompt: [...ids, ...greedy], temperature: 0 };
        const asked = { ...body, max_tokens: 1, prompt_logprobs: 1 };
        const { choices } = await engine.completions.create(asked);
        const listed = choices[0].prompt_logprobs.slice(ids.length);
        all.push(greedy.map((id, i) => listed[i][id].rank));
      }
      return all;
    }, smolLm2.continuations);
    for (const [prompt, { margins }] of smolLm2.continuations.entries()) {
      const wrong = ranks[prompt].flatMap((rank, i) => (rank > 1 && margins[i] >= APART ? i : []));
      assert.deepEqual(wrong, [], `prompt ${prompt + 1}`);
    }
  });
});
