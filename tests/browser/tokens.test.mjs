//! `engine.tokenize`, `engine.detokenize` and `engine.applyTemplate` in a page, with the embedded model.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { startHarness, wasmIsBuilt } from "./harness.mjs";

const TALES = join(root, "www/models/tales.gguf");
const skip = !wasmIsBuilt
  ? "skipped: the wasm module is not built"
  : !existsSync(TALES) && `skipped: ${TALES} does not exist`;

describe("tokens and templates", { skip }, () => {
  let harness;
  let page;
  before(async () => {
    harness = await startHarness();
    page = await harness.open();
    await page.evaluate(async () => {
      const chatTemplate = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";
      window.engine = await inpage.createEngine({ shared: false, endpoint: { chatTemplate } });
    });
  });
  after(() => harness?.close());

  test("a text has the tokens that a completion counts, and they have its text", async () => {
    const found = await page.evaluate(async () => {
      const prompt = "Once upon a time, é😀";
      const list = await engine.tokenize(prompt);
      const { usage } = await engine.completions.create({
        model: "default",
        prompt,
        max_tokens: 1,
      });
      const plain = await engine.tokenize({ prompt, add_special_tokens: false });
      const ids = Uint32Array.from(plain.tokens);
      const text = await engine.detokenize(ids);
      const named = await engine.tokenize({ prompt, return_token_strs: true });
      const { tokens: pieces } = await engine.tokenize({ prompt, with_pieces: true });
      return { list, usage, text, named, pieces, empty: await engine.detokenize([]) };
    });
    const { list, usage, text, named, pieces } = found;
    assert.equal(list.count, usage.prompt_tokens);
    assert.equal(list.tokens.length, list.count);
    assert.equal(list.token_strs, null);
    assert.ok(list.max_model_len >= 256);
    assert.equal(text, "Once upon a time, é😀");
    assert.equal(named.token_strs.length, list.count);
    assert.deepEqual(
      pieces.map(({ id }) => id),
      list.tokens,
    );
    assert.equal(found.empty, "");
  });

  test("messages have the text of the template and the tokens that chat counts", async () => {
    const { text, same, list, usage } = await page.evaluate(async () => {
      const messages = [{ role: "user", content: "Hello" }];
      const body = { model: "default", messages, max_tokens: 1 };
      return {
        text: await engine.applyTemplate(messages),
        same: await engine.applyTemplate({ messages, add_generation_prompt: true }),
        list: await engine.tokenize({ messages }),
        usage: (await engine.chat.completions.create(body)).usage,
      };
    });
    assert.deepEqual([text, same], ["[user]Hello", "[user]Hello"]);
    assert.equal(list.count, usage.prompt_tokens);
  });

  test("errors and aborts are those of other calls", async () => {
    const [wrong, aborted, served] = await page.evaluate(async () => [
      await caught(() => engine.detokenize([1e9])),
      await caught(() => engine.tokenize("a", { signal: AbortSignal.abort() })),
      await (await engine.fetch("/v1/models")).json(),
    ]);
    assert.deepEqual(
      [wrong.className, wrong.code, wrong.param],
      ["InpageError", "out_of_range", "tokens"],
    );
    assert.equal(aborted.name, "AbortError");
    assert.equal(served.data.length, 1);
  });
});
