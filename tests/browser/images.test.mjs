//! Images in the page, with a small vision model of random weights on the CPU device: through the engine, `fetch` and the
//! real `openai` SDK; as files of each format, damaged ones too, and as objects of JavaScript.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { startHarness, wasmIsBuilt } from "./harness.mjs";
import { CMYK_JPEG, bmp, gif, oriented, png } from "./image_files.mjs";

const MODELS = process.env.INPAGE_MODELS ?? resolve(root, "../shared/models");
const FOLDER = join(MODELS, "tiny");

const skip = !wasmIsBuilt
  ? "skipped: the wasm module is not built"
  : !existsSync(join(FOLDER, "mmproj-smolvlm-F16.gguf")) && `skipped: no model in ${FOLDER}`;

/** The template of the family's models. The one in the file prints lists of parts as they are. */
const CHAT_TEMPLATE =
  "<|im_start|>{% for message in messages %}{{ message.role | capitalize }}:{% if message.content is string %} " +
  "{{ message.content }}{% else %}{% for part in message.content %}{% if part.type == 'image' %}<image>{% else %}" +
  "{{ part.text }}{% endif %}{% endfor %}{% endif %}<end_of_utterance>\n{% endfor %}Assistant:";

/** The reference's prompt, and the token that transformers chooses after it. */
const PROMPT = "<|im_start|>User:<image>What is in this picture?<end_of_utterance>\nAssistant:";
const REFERENCE_TOKEN = 2561;
/** The image of the reference is one tile: 16 rows between three tokens, in place of one. */
const IMAGE_TOKENS = 16 + 3;

const SIDE = 128;
const greedy = { model: "default", prompt: PROMPT, max_tokens: 6, temperature: 0 };

describe("images", { skip }, () => {
  let harness;
  let page;
  /** Its pixels, 128 by 128. */
  let pixels;
  let expected;

  before(async () => {
    pixels = readFileSync(join(FOLDER, "smolvlm/img_128x128_rgb8.bin"));
    harness = await startHarness({ mounts: { "/tiny/": `${FOLDER}/` } });
    page = await openPage();
    expected = await ask(url(png({ width: SIDE, height: SIDE, data: pixels })));
    assert.equal(expected.status, undefined, expected.message);
  });
  after(() => harness?.close());

  /** A page with an engine, which tabs of the same context share. */
  async function openPage(context) {
    const opened = await harness.open(context);
    const failure = await opened.evaluate(
      (chatTemplate) =>
        caught(async () => {
          window.progress = [];
          window.engine = await inpage.createEngine({
            model: "/tiny/smolvlm-F16.gguf",
            projector: "/tiny/mmproj-smolvlm-F16.gguf",
            ...{ device: "cpu", threads: 1, endpoint: { chatTemplate } },
            onProgress: (event) => progress.push(event),
          });
          window.ask = async (body) => {
            const { value, ...failure } = await caught(() =>
              engine.completions.create({ return_token_ids: true, ...body }),
            );
            if (value === undefined) return failure;
            return { tokens: value.choices[0].token_ids, usage: value.usage.prompt_tokens };
          };
        }),
      CHAT_TEMPLATE,
    );
    assert.equal(failure.message, undefined);
    return opened;
  }

  const url = (file, type = "image/png") => `data:${type};base64,${file.toString("base64")}`;
  const ask = (...images) => page.evaluate((body) => ask(body), { ...greedy, images });

  test("the projector is loaded with the model, with the progress of both", async () => {
    const { projector, phases, total, cached } = await page.evaluate(async () => {
      const { projector } = await engine.info();
      const total = progress.findLast(({ phase }) => phase === "download")?.totalBytes;
      const cached = (await inpage.cache.list()).map(({ url }) => url.split("/").at(-1));
      return { projector, phases: progress.map(({ phase }) => phase), total, cached };
    });
    assert.equal(projector.kind, "idefics3");
    assert.equal(projector.layers, 3);
    assert.equal(phases.at(-1), "ready");
    const bytes = ["smolvlm-F16.gguf", "mmproj-smolvlm-F16.gguf"].map(
      (name) => readFileSync(join(FOLDER, name)).length,
    );
    assert.equal(total, bytes[0] + bytes[1]);
    assert.deepEqual(cached.sort(), ["mmproj-smolvlm-F16.gguf", "smolvlm-F16.gguf"]);
  });

  test("an image changes the answer to that of the reference, and its tokens are counted", async () => {
    assert.equal(expected.tokens[0], REFERENCE_TOKEN);
    const text = await page.evaluate((body) => ask(body), {
      ...greedy,
      prompt: PROMPT.replace("<image>", ""),
    });
    assert.notDeepEqual(text.tokens, expected.tokens);
    assert.equal(expected.usage, text.usage + IMAGE_TOKENS);
  });

  test("every lossless format gives the same tokens", async () => {
    // 216 colors, as GIF needs.
    const data = pixels.map((value) => Math.round(value / 51) * 51);
    const image = { width: SIDE, height: SIDE, data };
    const webp = await page.evaluate(
      async (source) => {
        const bitmap = await createImageBitmap(await (await fetch(source)).blob());
        const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
        canvas.getContext("2d").drawImage(bitmap, 0, 0);
        const blob = await canvas.convertToBlob({ type: "image/webp", quality: 1 });
        return Array.from(new Uint8Array(await blob.arrayBuffer()));
      },
      url(png(image)),
    );
    assert.ok(Buffer.from(webp).includes("VP8L"), "the file is lossless");
    const opaque = Buffer.alloc(4 * SIDE * SIDE, 255);
    const deep = Buffer.alloc(6 * SIDE * SIDE);
    for (let i = 0; i < SIDE * SIDE; i++) {
      opaque.set(data.subarray(3 * i, 3 * i + 3), 4 * i);
      for (let c = 0; c < 3; c++) deep.writeUInt16BE(data[3 * i + c] * 257, 2 * (3 * i + c));
    }
    const of8Bits = await ask(url(png(image)));
    assert.equal(of8Bits.tokens?.length, 6, of8Bits.message);
    for (const [type, file] of [
      ["image/bmp", bmp(image)],
      ["image/gif", gif({ ...image, frames: [data] })],
      ["image/webp", Buffer.from(webp)],
      ["image/png", png({ ...image, channels: 4, data: opaque })],
      ["image/png", png({ ...image, bits: 16, data: deep })],
    ]) {
      assert.deepEqual(await ask(url(file, type)), of8Bits, type);
    }
  });

  test("the first frame is taken, transparency is on white, and Exif turns an image", async () => {
    const data = pixels.map((value) => Math.round(value / 51) * 51);
    const white = Buffer.alloc(data.length, 255);
    const size = { width: SIDE, height: SIDE };
    const still = await ask(url(png({ ...size, data })));
    const animated = gif({ ...size, frames: [data, white] });
    assert.deepEqual(await ask(url(animated, "image/gif")), still);
    const clear = png({ ...size, channels: 4, data: Buffer.alloc(4 * SIDE * SIDE) });
    assert.deepEqual(await ask(url(clear)), await ask(url(png({ ...size, data: white }))));

    const image = url(png({ width: SIDE, height: 96, data: pixels.subarray(0, 3 * SIDE * 96) }));
    const { jpeg, turned } = await page.evaluate(async (source) => {
      const blob = await (await fetch(source)).blob();
      const draw = async (file, width, height, turn) => {
        const canvas = new OffscreenCanvas(width, height);
        const context = canvas.getContext("2d");
        if (turn) context.setTransform(0, 1, -1, 0, width, 0);
        context.drawImage(await createImageBitmap(file), 0, 0);
        return canvas;
      };
      const bytes = async (file) => Array.from(new Uint8Array(await file.arrayBuffer()));
      const jpeg = await (await draw(blob, 128, 96)).convertToBlob({ type: "image/jpeg" });
      const turned = await (await draw(jpeg, 96, 128, true)).convertToBlob({ type: "image/png" });
      return { jpeg: await bytes(jpeg), turned: await bytes(turned) };
    }, image);
    assert.deepEqual(
      await ask(url(oriented(Buffer.from(jpeg), 6), "image/jpeg")),
      await ask(url(Buffer.from(turned))),
    );
  });

  test("damaged and unusual files end in an answer or a 400, and the next request is answered", async () => {
    const file = png({ width: SIDE, height: SIDE, data: pixels });
    const wide = png({ width: 30_000, height: 1, data: Buffer.alloc(90_000, 100) });
    const huge = png({ width: 30_000, height: 30_000, data: Buffer.alloc(90_000) });
    const cases = [
      ["cut off", url(file.subarray(0, file.length / 2)), 400],
      ["the header alone", url(file.subarray(0, 33)), 400],
      ["another type than it says", url(file, "image/jpeg"), undefined],
      ["no image", url(Buffer.from("hello")), 400],
      ["an svg", url(Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>")), 400],
      ["a type that is not known", url(file, "image/svg+xml"), 400],
      ["bad base64", "data:image/png;base64,????", 400],
      ["30,000 pixels wide", url(wide), undefined],
      ["900 million pixels", url(huge), 400],
      ["four inks", url(CMYK_JPEG, "image/jpeg"), undefined],
      ["a URL of the network, without the option for it", "https://example.org/a.png", 400],
      ["an image beside the body that is not there", "attachment:0", 400],
    ];
    for (const [what, image, status] of cases) {
      const answer = await ask(image);
      assert.equal(answer.status, status, `${what}: ${answer.message}`);
      if (status === undefined) assert.ok(answer.tokens.length > 0, what);
      else assert.match(answer.message, /^images/, what);
    }
    const again = await ask(url(file));
    assert.deepEqual(again, expected);
  });

  test("plain fetch through the service worker answers the same", async () => {
    const body = { ...greedy, images: [url(png({ width: SIDE, height: SIDE, data: pixels }))] };
    const answer = await page.evaluate(async (body) => {
      await inpage.serveFromPage(engine).ready;
      const response = await fetch("/v1/completions", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ return_token_ids: true, ...body }),
      });
      return response.json();
    }, body);
    assert.deepEqual(answer.choices?.[0].token_ids, expected.tokens, answer.error?.message);
    assert.equal(answer.usage.prompt_tokens, expected.usage);
  });

  for (const door of ["engine.fetch", "the service worker"]) {
    test(`the openai SDK sends images in messages through ${door}`, async () => {
      const { usage, ids } = await page.evaluate(
        async ({ door, image }) => {
          if (door !== "engine.fetch") await inpage.serveFromPage(engine).ready;
          const openai = client({
            fetch: door === "engine.fetch" ? engine.fetch : inpage.servedFetch,
          });
          const { usage, choices } = await openai.chat.completions.create({
            ...{ model: "default", temperature: 0, max_tokens: 6, return_token_ids: true },
            messages: [
              {
                role: "user",
                content: [
                  { type: "image_url", image_url: { url: image, detail: "low" } },
                  { type: "text", text: "What is in this picture?" },
                ],
              },
            ],
          });
          return { usage: usage.prompt_tokens, ids: choices[0].token_ids };
        },
        { door, image: url(png({ width: SIDE, height: SIDE, data: pixels })) },
      );
      assert.equal(usage, expected.usage);
      if (ids) assert.deepEqual(ids, expected.tokens);
    });
  }

  test("objects of JavaScript are images, in prompts and in messages", async () => {
    const file = url(png({ width: SIDE, height: SIDE, data: pixels }));
    const answers = await page.evaluate(
      async ({ body, file }) => {
        const blob = await (await fetch(file)).blob();
        const bitmap = await createImageBitmap(blob);
        const element = new Image();
        element.src = file;
        const canvas = document.createElement("canvas");
        Object.assign(canvas, { width: bitmap.width, height: bitmap.height });
        canvas.getContext("2d").drawImage(bitmap, 0, 0);
        const offscreen = new OffscreenCanvas(bitmap.width, bitmap.height);
        offscreen.getContext("2d").drawImage(bitmap, 0, 0);
        const data = offscreen.getContext("2d").getImageData(0, 0, bitmap.width, bitmap.height);
        const given = { blob, file: new File([blob], "a.png"), bitmap, element, canvas, offscreen };
        const answers = {};
        for (const [name, image] of Object.entries({ ...given, data })) {
          answers[name] = await ask({ ...body, images: [image] });
        }
        answers["of a list of prompts"] = await ask({ ...body, images: [[bitmap]] });
        const chat = await engine.chat.completions.create({
          ...{ model: "default", temperature: 0, max_tokens: 6 },
          messages: [
            {
              role: "user",
              content: [
                { type: "image_url", image_url: { url: bitmap } },
                { type: "text", text: "What is in this picture?" },
              ],
            },
          ],
        });
        return { answers, usage: chat.usage.prompt_tokens };
      },
      { body: greedy, file },
    );
    assert.equal(Object.keys(answers.answers).length, 8);
    for (const [name, answer] of Object.entries(answers.answers)) {
      assert.deepEqual(answer, expected, name);
    }
    assert.equal(answers.usage, expected.usage);
  });

  test("what is wrong with an object is said", async () => {
    const answers = await page.evaluate(async (body) => {
      const empty = new OffscreenCanvas(0, 0);
      return [
        await ask({ ...body, images: [new Blob(["hello"])] }),
        await ask({ ...body, images: [empty] }),
        await ask({ ...body, images: [{ url: "a" }] }),
      ];
    }, greedy);
    for (const [index, reason] of [/none of png/, /0x0 pixels/, /made of strings/].entries()) {
      assert.equal(answers[index].status, 400);
      assert.match(answers[index].message, reason);
    }
  });

  test("another tab's image is answered by the shared engine, and again by the tab that takes over", async () => {
    const context = page.context();
    const other = await openPage(context);
    const file = url(png({ width: SIDE, height: SIDE, data: pixels }));
    const askOther = () =>
      other.evaluate(
        async ({ body, file }) => {
          const blob = await (await fetch(file)).blob();
          return ask({ ...body, images: [blob] });
        },
        { body: greedy, file },
      );
    assert.deepEqual(await askOther(), expected);
    await other.evaluate(
      async ({ body, file }) => {
        const blob = await (await fetch(file)).blob();
        window.begun = Promise.withResolvers();
        window.ended = (async () => {
          const ids = [];
          const long = { ...body, max_tokens: 200, ignore_eos: true, stream: true };
          const request = { ...long, images: [blob], return_token_ids: true };
          for await (const { choices } of await engine.completions.create(request)) {
            ids.push(...(choices[0]?.token_ids ?? []));
            begun.resolve();
          }
          return ids;
        })();
        await begun.promise;
      },
      { body: greedy, file },
    );
    await page.close();
    const ids = await other.evaluate(() => ended);
    assert.equal(ids.length, 200);
    assert.deepEqual(ids.slice(0, 6), expected.tokens);
    page = other;
  });

  test("wrong projectors are refused with a reason", async () => {
    const refusals = await page.evaluate(() => {
      const model = "/tiny/smolvlm-F16.gguf";
      const other = "/tiny/llama3-Q4_0.gguf";
      const start = (options) =>
        caught(() => inpage.createEngine({ device: "cpu", threads: 1, model, ...options }));
      return Promise.all([
        start({ projector: {} }),
        start({ projector: "embedded" }),
        start({ projector: { folder: "/tiny/" } }),
        start({ model: undefined, models: { a: model }, projector: "/tiny/a.gguf" }),
        start({ projector: "/tiny/none.gguf", shared: false }),
        start({ projector: other, shared: false }),
        start({ model: "embedded", projector: "/tiny/mmproj-smolvlm-F16.gguf", shared: false }),
      ]);
    });
    const reasons = [
      /projector needs a url or a file/,
      /the model in the package/,
      /projector/,
      /beside its model/,
      /projector: .*404/,
      /projector/,
      /projector/,
    ];
    for (const [index, reason] of reasons.entries()) {
      assert.match(refusals[index].message ?? "nothing was refused", reason, `case ${index}`);
    }
  });
});
