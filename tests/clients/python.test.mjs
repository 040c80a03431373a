//! Python clients against the native server: the official one and LiteLLM, each in a virtual environment under target/. Without
//! PyPI their tests are skipped.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { root, run } from "../../scripts/process.mjs";
import { CHAT_TEMPLATE } from "./chat_template.mjs";
import { EMBEDDER, startEndpoint } from "./endpoint.mjs";
import { LITELLM, OPENAI, provideVenv } from "./python.mjs";

// Before any suite: the tests of the file end when all suites that are known by then have ended.
const openai = await provideVenv("clients-venv", OPENAI);
// It needs another version of openai.
const litellm = await provideVenv("clients-venv-litellm", LITELLM);

let endpoint;
let embedder;

before(async () => {
  endpoint = await startEndpoint();
  embedder = await startEndpoint(EMBEDDER);
  await endpoint.hooks({ switches: { chatTemplate: CHAT_TEMPLATE } });
});
after(async () => {
  await endpoint?.close();
  await embedder?.close();
});

for (const [name, script, { python, reason }] of [
  ["openai for Python", "openai_client.py", openai],
  ["LiteLLM", "litellm_client.py", litellm],
]) {
  describe(name, { skip: reason && `skipped: ${reason}` }, () => {
    test("its script passes", async () => {
      const path = join(root, "tests/clients", script);
      let output = "";
      const status = await run(python, [path, endpoint.origin, embedder.origin], {
        timeout_ms: 120_000,
        onOutput: (text) => {
          output += text;
        },
      });
      assert.equal(status, 0, output);
      await endpoint.idle();
    });
  });
}
