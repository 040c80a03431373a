//! Images in prompts of the Prompt API in a page, with a small vision model of random weights: each kind of object that shows an
//! image gives the answer of its file.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { startHarness, wasmIsBuilt } from "./harness.mjs";
import { png } from "./image_files.mjs";
import { CHAT_TEMPLATE } from "./smolvlm_template.mjs";

const MODELS = process.env.INPAGE_MODELS ?? resolve(root, "../shared/models");
const FOLDER = join(MODELS, "tiny");
const SIDE = 128;

const skip = !wasmIsBuilt
  ? "skipped: the wasm module is not built"
  : !existsSync(join(FOLDER, "mmproj-smolvlm-F16.gguf")) && `skipped: no model in ${FOLDER}`;

/** 16 rows between three tokens, in place of the placeholder. */
const IMAGE_TOKENS = 16 + 3;

describe("images in prompts", { skip }, () => {
  let harness;
  let page;

  before(async () => {
    harness = await startHarness({ mounts: { "/tiny/": `${FOLDER}/` } });
    page = await harness.open();
    const data = readFileSync(join(FOLDER, "smolvlm/img_128x128_rgb8.bin"));
    const picture = png({ width: SIDE, height: SIDE, data }).toString("base64");
    const failure = await page.evaluate(
      ([chatTemplate, base64]) =>
        caught(async () => {
          const { createLanguageModel } = await import("/dist/prompt_api/index.js");
          window.LanguageModel = createLanguageModel({
            model: "/tiny/smolvlm-F16.gguf",
            projector: "/tiny/mmproj-smolvlm-F16.gguf",
            ...{ device: "cpu", threads: 1 },
            endpoint: { chatTemplate, defaultMaxMessageTokens: 5 },
          });
          const expectedInputs = [{ type: "image" }];
          window.expected = await LanguageModel.availability({ expectedInputs });
          window.session = await LanguageModel.create({ expectedInputs, temperature: 0, topK: 1 });
          window.url = `data:image/png;base64,${base64}`;
          window.file = await (await fetch(url)).blob();
          window.asked = (...values) => [
            {
              role: "user",
              content: [
                ...values.map((value) => ({ type: "image", value })),
                { type: "text", value: "What is in this picture?" },
              ],
            },
          ];
          // Each question is asked of a new conversation.
          window.ask = async (value) => (await session.clone()).prompt(asked(value));
          window.picture = async () => {
            const image = new Image();
            image.src = url;
            await image.decode();
            return image;
          };
        }),
      [CHAT_TEMPLATE, picture],
    );
    assert.equal(failure.message, undefined);
  });
  after(() => harness?.close());

  test("the model is expected to see by its options, and the image is counted", async () => {
    const [expected, plain, seen, answer, other] = await page.evaluate(async () => {
      const white = new OffscreenCanvas(64, 64);
      white.getContext("2d").fillRect(0, 0, 64, 64);
      return [
        window.expected,
        await session.measureContextUsage(asked()),
        await session.measureContextUsage(asked(file)),
        await ask(file),
        await ask(white),
      ];
    });
    assert.equal(expected, "downloadable");
    // The placeholder is a token, too.
    assert.equal(seen, plain + IMAGE_TOKENS);
    assert.ok(answer.length > 0);
    assert.notEqual(answer, other);
  });

  test("every object that shows the image gives the answer of its file", async () => {
    const answers = await page.evaluate(async () => {
      const image = await picture();
      const drawn = (canvas) => {
        canvas.getContext("2d").drawImage(image, 0, 0);
        return canvas;
      };
      const canvas = Object.assign(document.createElement("canvas"), { width: 128, height: 128 });
      const bitmap = await createImageBitmap(file);
      const frame = new VideoFrame(bitmap, { timestamp: 0 });
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      const svgImage = document.createElementNS("http://www.w3.org/2000/svg", "image");
      svg.append(svgImage);
      document.body.append(svg);
      const loaded = new Promise((resolve) => svgImage.addEventListener("load", resolve));
      svgImage.setAttribute("href", url);
      await loaded;
      const bytes = await file.arrayBuffer();
      const padded = new Uint8Array(bytes.byteLength + 10);
      padded.set(new Uint8Array(bytes), 10);
      const unloaded = new Image();
      unloaded.src = url;
      const kinds = {
        ...{ file, bitmap, frame, image, unloaded, svgImage, bytes },
        canvas: drawn(canvas),
        offscreen: drawn(new OffscreenCanvas(128, 128)),
        pixels: canvas.getContext("2d").getImageData(0, 0, 128, 128),
        view: padded.subarray(10),
        dataView: new DataView(padded.buffer, 10),
      };
      const entries = Object.entries(kinds).map(async ([name, value]) => [name, await ask(value)]);
      const found = Object.fromEntries(await Promise.all(entries));
      frame.close();
      return found;
    });
    const { file: expected, ...others } = answers;
    assert.equal(Object.keys(others).length, 11);
    for (const [name, answer] of Object.entries(others)) assert.equal(answer, expected, name);
  });

  test("a video is its current frame, and a canvas what it shows at the call", async () => {
    const [still, moving, later, expected] = await page.evaluate(async () => {
      const canvas = Object.assign(document.createElement("canvas"), { width: 64, height: 64 });
      const context = canvas.getContext("2d");
      context.fillStyle = "#f00";
      context.fillRect(0, 0, 64, 64);
      const asking = ask(canvas);
      const video = document.createElement("video");
      video.muted = true;
      video.srcObject = canvas.captureStream(10);
      await video.play();
      const moving = await ask(video);
      for (const track of video.srcObject.getTracks()) track.stop();
      const red = canvas.getContext("2d").getImageData(0, 0, 64, 64);
      context.clearRect(0, 0, 64, 64);
      return [await asking, typeof moving, await ask(canvas), await ask(red)];
    });
    assert.equal(still, expected);
    assert.equal(moving, "string");
    assert.notEqual(later, expected);
  });

  test("what cannot be read is an error of the platform's, and the session goes on", async () => {
    const names = await page.evaluate(async () => {
      const broken = file.slice(0, 40);
      const closed = await createImageBitmap(file);
      closed.close();
      const empty = document.createElement("canvas");
      empty.width = 0;
      const values = [broken, new ArrayBuffer(3), closed, empty, "text", undefined];
      const names = [];
      for (const value of values) names.push((await caught(() => ask(value))).name);
      const plain = await LanguageModel.create();
      names.push((await caught(() => plain.prompt(asked(file)))).name);
      const assistant = [{ role: "assistant", content: [{ type: "image", value: file }] }];
      names.push((await caught(() => session.prompt(assistant))).name);
      names.push(typeof (await ask(file)));
      return names;
    });
    assert.deepEqual(names, [
      ...["InvalidStateError", "InvalidStateError", "InvalidStateError", "InvalidStateError"],
      ...["TypeError", "TypeError", "NotSupportedError", "NotSupportedError", "string"],
    ]);
  });

  test("an aborted prompt with images leaves the session usable", async () => {
    const [name, usage, answer] = await page.evaluate(async () => {
      const one = await session.clone();
      const controller = new AbortController();
      const asking = one.prompt(asked(file, file), { signal: controller.signal });
      controller.abort();
      const { name } = await caught(() => asking);
      return [name, one.contextUsage, await one.prompt("And now?")];
    });
    assert.deepEqual([name, usage], ["AbortError", 0]);
    assert.ok(answer.length > 0);
  });
});
