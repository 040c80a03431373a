//! SmolLM2-135M-Instruct in a page on the GPU: the perplexity of a text. A file of its own, because software adapters are slow beside other
//! programs, and each file has a time limit.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startHarness, wasmIsBuilt } from "../browser/harness.mjs";
import { perplexity, provideRealModels, references } from "./models.mjs";
import { MODEL_URL, openSmolLm2 } from "./smollm2_page.mjs";

const MAX_GPU_ERROR = 0.01;

const models = await provideRealModels();
const reason = models.reason ?? (!wasmIsBuilt && "the wasm module is not built");
const { smolLm2 } = references();

describe("the perplexity of SmolLM2 in a page, on the GPU", {
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

  test("the perplexity of a text is within 1 % of the exact one", async () => {
    const logprobs = await page.evaluate(async (prompt) => {
      const body = { model: "default", prompt, echo: true, max_tokens: 0, logprobs: 0 };
      const { choices } = await engine.completions.create(body);
      return choices[0].logprobs.token_logprobs.slice(1);
    }, models.text);
    assert.equal(logprobs.length, smolLm2.logprobs.length);
    const found = perplexity(logprobs);
    const error = Math.abs(found / smolLm2.perplexity - 1);
    assert.ok(error < MAX_GPU_ERROR, `${found} instead of ${smolLm2.perplexity}`);
  });
});
