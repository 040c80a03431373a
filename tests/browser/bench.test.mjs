//! The output of `npm run bench -- --projector`, without the times, which depend on the machine.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { parseOptions } from "../../scripts/bench/options.mjs";
import { measureEmbeddingsInPage } from "../../scripts/bench/embeddings_page.mjs";
import { measureImagesInPage } from "../../scripts/bench/images_page.mjs";
import { cosine, embeddingsLine, imageLine } from "../../scripts/bench/report.mjs";
import { root } from "../../scripts/process.mjs";
import { startHarness, wasmIsBuilt } from "./harness.mjs";

test("images are measured in the page", {
  skip: !wasmIsBuilt && "skipped: the wasm module is not built",
}, async () => {
  const harness = await startHarness({
    wholeBrowser: true,
    mounts: { "/models/": join(root, "tests/parity/images/") },
  });
  try {
    const page = await harness.open();
    const options = { device: "cpu", threads: 1, side: 64, rounds: 2 };
    const url = "/models/idefics3.gguf";
    const projectorUrl = "/models/idefics3.mmproj.gguf";
    const measured = await page.evaluate(measureImagesInPage, { url, projectorUrl, ...options });
    assert.equal(measured.error, undefined);
    assert.equal(measured.info.projector.kind, "idefics3");
    assert.equal(measured.samples.length, 2);
    for (const sample of [measured.cold, ...measured.samples]) {
      assert.ok(sample.prompt_tokens > 16, "the rows of the image");
      assert.equal(sample.prompt_tokens, measured.cold.prompt_tokens);
      assert.ok(sample.first_ms > 0);
      assert.ok(Number.isFinite(sample.image_ms));
    }
    const failed = await page.evaluate(measureImagesInPage, {
      url,
      projectorUrl: url,
      ...options,
    });
    assert.match(failed.error, /projector/);
  } finally {
    await harness.close();
  }
});

test("embeddings are measured in the page", {
  skip: !wasmIsBuilt && "skipped: the wasm module is not built",
}, async () => {
  const harness = await startHarness({
    mounts: {
      "/models/": join(root, "tests/parity/embeddings/"),
      "/texts.js": join(root, "scripts/bench/peer_pages/bench_texts.js"),
    },
  });
  try {
    const page = await harness.open();
    const options = { device: "cpu", threads: 1, count: 3, rounds: 2, textsUrl: "/texts.js" };
    const place = { url: "/models/bert.gguf" };
    const measured = await page.evaluate(measureEmbeddingsInPage, { place, ...options });
    assert.equal(measured.error, undefined);
    assert.equal(measured.samples.length, 2);
    assert.ok(measured.samples.every(({ texts_ms, text_ms }) => texts_ms > 0 && text_ms > 0));
    assert.ok(measured.vector.length > 0 && measured.tokens > 3);
    const absent = { url: "/models/none.gguf" };
    const failed = await page.evaluate(measureEmbeddingsInPage, { place: absent, ...options });
    assert.match(failed.error, /none\.gguf/);
  } finally {
    await harness.close();
  }
});

test("the line has medians, and no rate where there is none", () => {
  const samples = [
    { texts_ms: 400, text_ms: 12 },
    { texts_ms: 900, text_ms: 90 },
    { texts_ms: 200, text_ms: 10 },
  ];
  assert.deepEqual(embeddingsLine(samples, 32), { texts_per_s: 80, text_ms: 12 });
  assert.equal(cosine([3, 4], [8, 6]), 0.96);
  const sample = (first_ms, image_ms) => ({ prompt_tokens: 90, first_ms, image_ms });
  assert.deepEqual(imageLine([sample(300, 100), sample(900, 800), sample(400, 200)]), {
    prompt_tokens: 90,
    first_token_ms: 400,
    image_ms: 200,
    images_per_s: 5,
  });
  assert.equal(imageLine([sample(300, -1)]).images_per_s, null);
});

test("options that do not fit together are refused", () => {
  const model = ["--model", "a.gguf"];
  const projector = ["--projector", "b.gguf"];
  const peer = (name) => ["--peers", "peers", "--peer", `${name}=c`];
  assert.throws(() => parseOptions(projector), /--projector needs --model/);
  const embeddings = ["--embeddings", "folder"];
  assert.throws(() => parseOptions([...model, ...embeddings]), /names the model alone/);
  assert.throws(
    () => parseOptions([...embeddings, ...peer("wllama")]),
    /embeddings are not measured with wllama/,
  );
  assert.equal(parseOptions([...embeddings, ...peer("transformers-cpu")]).peers.peers.length, 1);
  const texts = [...model, ...peer("wllama")];
  assert.throws(() => parseOptions([...texts, ...projector]), /not measured with wllama/);
  assert.doesNotThrow(() => parseOptions(texts));
  const { peers } = parseOptions([...model, ...projector, ...peer("transformers-cpu")]);
  assert.deepEqual(peers.peers, [
    { name: "transformers-cpu", runtime: "transformers", model: "c", device: "cpu" },
  ]);
  assert.throws(() => parseOptions(["--rounds", "0"]), /--rounds takes positive numbers/);
});
