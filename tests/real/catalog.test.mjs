//! `npm run catalog -- --check` with real headers, from a local hub: MiniLM's folder is as the catalog says; the file of SmolLM2, which is
//! of another type than the catalog's, differs in its size and memory alone.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { wasmIsBuilt } from "../browser/harness.mjs";
import { startHub } from "../delivery/hub_server.mjs";
import { provideRealModels } from "./models.mjs";

const models = await provideRealModels();
const reason = models.reason ?? (wasmIsBuilt ? undefined : "the wasm module is not built");
const FOLDER_FILES = [
  ...["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"],
  ...["modules.json", "sentence_bert_config.json", "1_Pooling/config.json"],
];

describe("the check of the catalog", { skip: reason && `skipped: ${reason}` }, () => {
  let hub;
  before(async () => {
    const { catalog } = await import(join(root, "www/dist/catalog/models.js"));
    const { resolveModel } = await import(join(root, "www/dist/options/model.js"));
    const pathOf = (name) => {
      const { files } = catalog.find((model) => model.name === name);
      return new URL(resolveModel(files.model).location.urls[0]).pathname.replace("/resolve/", "/");
    };
    const folder = pathOf("all-minilm-l6-v2");
    hub = await startHub({
      [pathOf("smollm2-135m-instruct")]: readFileSync(models.smolLm2),
      ...Object.fromEntries(
        FOLDER_FILES.map((file) => [`${folder}${file}`, readFileSync(join(models.miniLm, file))]),
      ),
    });
  });
  after(() => hub?.close());

  const check = (name) =>
    new Promise((resolve) => {
      const args = [join(root, "scripts/catalog.mjs"), "--check", name];
      const env = { ...process.env, HF_ENDPOINT: hub.hub.origin };
      execFile(process.execPath, args, { env }, (error, stdout, stderr) =>
        resolve({ status: error?.code ?? 0, output: stdout + stderr }),
      );
    });

  test("agrees with the folder of MiniLM", async () => {
    const { status, output } = await check("all-minilm-l6-v2");
    assert.equal(status, 0, output);
    assert.match(output, /all-minilm-l6-v2: as the catalog says \(bert\)/);
  });

  test("tells what another type of SmolLM2 changes", async () => {
    const { status, output } = await check("smollm2-135m-instruct");
    assert.equal(status, 1);
    assert.match(output, /smollm2-135m-instruct: bytes \d+ should be 98362432; /);
    assert.doesNotMatch(output, /parameters|contextTokens/);
  });
});
