//! A program that Node, Deno and Bun run: it uses an engine, disposes it, and must then end by itself.

import assert from "node:assert/strict";
import { createEngine } from "../../www/dist/node/index.js";

const engine = await createEngine();
const request = { model: "default", prompt: "Once upon a time", temperature: 0, max_tokens: 12 };
const plain = await engine.completions.create(request);
let text = "";
for await (const chunk of await engine.completions.create({ ...request, stream: true })) {
  text += chunk.choices[0].text;
}
assert.equal(text, plain.choices[0].text);
assert.match(text, /[a-z]{3}/);

const controller = new AbortController();
const endless = { ...request, max_tokens: 400, ignore_eos: true, stream: true };
const aborted = (async () => {
  const stream = await engine.completions.create(endless, { signal: controller.signal });
  for await (const _ of stream) controller.abort();
})();
await assert.rejects(aborted, { name: "AbortError" });
assert.equal((await engine.info()).device, "cpu");
await assert.rejects(createEngine({ model: "missing.gguf" }), /missing\.gguf/);
await engine.dispose();

// An answer that came before a model was loaded, and that nobody reads.
const several = await createEngine({ models: { tales: "embedded" } });
const unread = await several.fetch("http://localhost/v1/models", { method: "PUT" });
assert.equal(unread.status, 405);
await several.completions.create({ ...request, model: "tales" });
await several.dispose();
console.log("the last line is reached");
