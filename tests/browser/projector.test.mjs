//! The projector option and images beside the body, with a fake engine: what is opened, shared, sent and sent again.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startHarness } from "./harness.mjs";

describe("a projector with a fake engine", () => {
  let harness;
  let page;

  before(async () => {
    harness = await startHarness();
    page = await harness.open();
  });
  after(() => harness?.close());

  test("its file is opened beside the model's, and the progress ends with both", async () => {
    const { sizes, last, without } = await page.evaluate(async () => {
      const sizes = [];
      let last;
      const projector = new File(["12345"], "mmproj.gguf");
      for (const given of [projector, { file: projector }]) {
        const onProgress = (event) => {
          last = event;
        };
        const engine = await startFake({ projector: given, onProgress });
        sizes.push((await engine.info()).projector.fileBytes);
        await engine.dispose();
      }
      const plain = await startFake({});
      const without = (await plain.info()).projector;
      await plain.dispose();
      return { sizes, last, without };
    });
    assert.deepEqual(sizes, [5, 5]);
    assert.equal(without, null);
    // Three bytes of the model.
    assert.deepEqual([last.phase, last.loadedBytes, last.totalBytes], ["ready", 8, 8]);
  });

  test("wrong projectors are refused with a reason", async () => {
    const messages = await page.evaluate(async () => {
      const refused = [];
      for (const options of [
        { projector: {} },
        { projector: 5 },
        { projector: "embedded" },
        { projector: { url: "/a.gguf", file: new Blob() } },
        { projector: "/folder/" },
        { projector: "hf:owner/name" },
        { model: undefined, models: { a: "/a.gguf" }, projector: "/b.gguf" },
        { model: undefined, models: { a: { model: "/a.gguf", projector: {} } } },
        { projector: "/does-not-exist.gguf" },
      ]) {
        refused.push((await caught(() => startFake(options))).message);
      }
      return refused;
    });
    const reasons = [
      /^projector needs a url or a file/,
      /^projector needs a url or a file/,
      /^projector: the model in the package/,
      /^projector: url and file exclude each other/,
      /^projector: .*folder/,
      /^projector: .*folder/,
      /beside its model/,
      /^models\["a"\]: projector needs/,
      /^projector: .*404/,
    ];
    for (const [index, reason] of reasons.entries()) assert.match(messages[index], reason);
  });

  test("a draft model is opened beside the model, too, and refused with a reason", async () => {
    const { bytes, last, messages } = await page.evaluate(async () => {
      let last;
      const onProgress = (event) => {
        last = event;
      };
      const engine = await startFake({ draftModel: new File(["1234"], "small.gguf"), onProgress });
      const bytes = (await engine.info()).draftModel.fileBytes;
      await engine.dispose();
      const messages = [];
      for (const options of [
        { draftModel: 5 },
        { model: undefined, models: { a: "/a.gguf" }, draftModel: "/b.gguf" },
        { draftModel: "/does-not-exist.gguf" },
      ]) {
        messages.push((await caught(() => startFake(options))).message);
      }
      return { bytes, last, messages };
    });
    assert.equal(bytes, 4);
    assert.deepEqual([last.phase, last.loadedBytes, last.totalBytes], ["ready", 7, 7]);
    const reasons = [/^draftModel needs a url/, /beside its model/, /^draft model: .*404/];
    for (const [index, reason] of reasons.entries()) assert.match(messages[index], reason);
  });

  test("each of several models has its own", async () => {
    const bytes = await page.evaluate(async () => {
      const model = { file: new Blob(["abc"]) };
      const engine = await startFake({
        model: undefined,
        models: { sees: { model, projector: new Blob(["12"]) }, reads: { model } },
      });
      await engine.loadModel("sees");
      await engine.loadModel("reads");
      const { models } = await engine.info();
      await engine.dispose();
      return [models.sees.projector?.fileBytes, models.reads.projector];
    });
    assert.deepEqual(bytes, [2, null]);
  });

  test("images travel beside the body, also to the engine after a lost one", async () => {
    const { answers, body } = await page.evaluate(async () => {
      const engine = await startFake({ endpoint: { chatTemplate: "x" } });
      const blob = new Blob(["image"], { type: "image/png" });
      const canvas = new OffscreenCanvas(3, 2);
      canvas.getContext("2d");
      const chat = async (text, ...images) => {
        const parts = images.map((url) => ({ type: "image_url", image_url: { url } }));
        const messages = [{ role: "user", content: [...parts, { type: "text", text }] }];
        let answer = "";
        for await (const { choices } of await engine.chat.completions.create({
          ...{ model: "fake", messages, stream: true },
        })) {
          answer += choices[0]?.delta.content ?? "";
        }
        return answer;
      };
      const answers = [
        await chat("say:images", blob, new File(["a"], "a.png")),
        await chat("say:images", "data:image/png;base64,AAAA", canvas),
        await chat("lose-images:5", blob),
      ];
      const raw = await engine.completions.create({
        ...{ model: "fake", prompt: "raw", images: [[blob], ["data:,"]] },
      });
      await engine.dispose();
      return { answers, body: JSON.parse(raw.choices[0].text) };
    });
    assert.deepEqual(answers, ["5 bytes, 1 bytes", "3 by 2 pixels", "5 bytes é1 é2 é3 5 bytes "]);
    assert.deepEqual(body.images, [["attachment:0"], ["data:,"]]);
  });
});
