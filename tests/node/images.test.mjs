//! Images outside of a browser: what the decoder makes of files, an engine and a server that see them, and what they say where the
//! decoder's package is not installed.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, existsSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { createEngine, inspectModel } from "inpage";
import OpenAI from "openai";
import sharp from "sharp";
import { root } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { decodeImage } from "../../www/dist/node/decode_image.js";
import { CMYK_JPEG, bmp, gif, oriented, png } from "../browser/image_files.mjs";
import { runServe, startServe } from "./serve_process.mjs";

const FOLDER = join(root, "tests/parity/images");
const MODEL = join(FOLDER, "gemma3.gguf");
const PROJECTOR = join(FOLDER, "gemma3.mmproj.gguf");
const MODELS = process.env.INPAGE_MODELS ?? resolve(root, "../shared/models");
const SMOLVLM = join(MODELS, "tiny");

const [WIDTH, HEIGHT] = [24, 16];
/** Colors that a GIF file can have: 216 at most. */
const pixels = Buffer.from(
  Array.from({ length: WIDTH * HEIGHT }, (_, i) => [
    51 * (i % 6),
    51 * (Math.floor(i / WIDTH) % 6),
    51 * (i % 5),
  ]).flat(),
);
const image = { width: WIDTH, height: HEIGHT, data: pixels };
const white = Buffer.alloc(pixels.length, 255);
const raw = { raw: { width: WIDTH, height: HEIGHT, channels: 3 } };

const url = (file, type = "image/png") => `data:${type};base64,${file.toString("base64")}`;
const greedy = { model: "default", max_tokens: 6, temperature: 0, return_token_ids: true };

/** The pixels in 16 bits per channel. */
function deep(wordOf) {
  const words = Buffer.alloc(2 * pixels.length);
  for (const [i, value] of pixels.entries()) words.writeUInt16BE(wordOf(value), 2 * i);
  return png({ ...image, bits: 16, data: words });
}

/** The pixels with an opacity. */
function withOpacity(opacity) {
  const data = Buffer.alloc((pixels.length / 3) * 4, opacity);
  for (let i = 0; i < pixels.length / 3; i++) data.set(pixels.subarray(3 * i, 3 * i + 3), 4 * i);
  return data;
}

describe("the decoder", () => {
  const decoded = async (file) => {
    const { width, height, channels, data } = await decodeImage(file);
    return { width, height, channels, data: Buffer.from(data) };
  };
  const expected = { width: WIDTH, height: HEIGHT, channels: 3, data: pixels };

  test("files without loss are their pixels", async () => {
    for (const [name, file] of [
      ["png", png(image)],
      ["gif, of which the first frame is taken", gif({ ...image, frames: [pixels, white] })],
      ["webp", await sharp(pixels, raw).webp({ lossless: true }).toBuffer()],
      ["palette", await sharp(pixels, raw).png({ palette: true, colours: 256 }).toBuffer()],
      ["16 bits", deep((value) => value * 257)],
      // The nearest 8 bits, not the higher ones.
      ["16 bits between", deep((value) => Math.max(0, value * 257 - 100))],
    ]) {
      assert.deepEqual(await decoded(file), expected, name);
    }
    const data = withOpacity(100);
    const clear = await decoded(png({ ...image, channels: 4, data }));
    assert.deepEqual(clear, { ...expected, channels: 4, data });
    const gray = await sharp(pixels, raw).toColourspace("b-w").png().toBuffer();
    assert.equal((await decoded(gray)).channels, 3);
  });

  test("Exif turns an image, and an embedded color profile does not change it", async () => {
    const jpeg = await sharp(pixels, raw).jpeg({ quality: 100 }).toBuffer();
    const plain = await decoded(jpeg);
    const turned = await decoded(oriented(jpeg, 6));
    assert.deepEqual([turned.width, turned.height], [HEIGHT, WIDTH]);
    // The left column, from below, is the upper row.
    for (let x = 0; x < HEIGHT; x++) {
      const from = 3 * (HEIGHT - 1 - x) * WIDTH;
      assert.deepEqual(turned.data.subarray(3 * x, 3 * x + 3), plain.data.subarray(from, from + 3));
    }
    const profiled = await sharp(pixels, raw).withIccProfile("p3").png().toBuffer();
    const { data } = await sharp(profiled, { ignoreIcc: true })
      .raw()
      .toBuffer({ resolveWithObject: true });
    assert.deepEqual((await decoded(profiled)).data, data);
  });

  test("four inks become three channels, and damaged files are errors", async () => {
    const { width, height, channels, data } = await decoded(CMYK_JPEG);
    assert.deepEqual([width, height, channels, data.length], [16, 16, 3, 768]);
    const file = png(image);
    for (const damaged of [file.subarray(0, 33), file.subarray(0, file.length / 2)]) {
      await assert.rejects(decodeImage(damaged));
    }
  });
});

describe("an engine that sees", () => {
  let engine;
  before(async () => {
    engine = await createEngine({ model: MODEL, projector: PROJECTOR, threads: 2 });
  });
  after(() => engine?.dispose());

  const ask = async (...images) => {
    const request = { ...greedy, prompt: "<image>What is it?", images };
    const { choices, usage } = await engine.completions.create(request);
    return { ids: choices[0].token_ids, tokens: usage.prompt_tokens };
  };

  test("all formats without loss give the same answer, in URLs and as objects", async () => {
    assert.equal((await engine.info()).projector.kind, "gemma3");
    const answer = await ask(url(png(image)));
    assert.equal(answer.ids.length, 6);
    for (const [name, given] of [
      ["bmp", url(bmp(image), "image/bmp")],
      ["gif", url(gif({ ...image, frames: [pixels, white] }), "image/gif")],
      ["opaque", url(png({ ...image, channels: 4, data: withOpacity(255) }))],
      ["16 bits", url(deep((value) => value * 257))],
      ["blob", new Blob([png(image)])],
    ]) {
      assert.deepEqual(await ask(given), answer, name);
    }
    const blank = await ask(url(png({ ...image, data: white })));
    assert.notDeepEqual(blank, answer);
    const clear = await ask(url(png({ ...image, channels: 4, data: withOpacity(0) })));
    assert.deepEqual(clear, blank, "what is transparent lies on white");
  });

  test("files that cannot be used are errors, and the next request is answered", async () => {
    const file = png(image);
    for (const [given, reason] of [
      [url(file.subarray(0, file.length / 2)), /cannot be decoded/],
      [url(bmp(image).subarray(0, 100), "image/bmp"), /cannot be decoded/],
      [url(Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>")), /none of png/],
      ["https://example.org/a.png", /not a data: URL/],
    ]) {
      await assert.rejects(ask(given), (error) => {
        assert.deepEqual([error.status, error.code, error.param], [400, "invalid_value", "images"]);
        assert.match(error.message, reason);
        return true;
      });
    }
    assert.equal((await ask(url(CMYK_JPEG, "image/jpeg"))).ids.length, 6);
  });

  test("images of other servers are for browsers", async () => {
    const options = { model: MODEL, projector: PROJECTOR, endpoint: { remoteImages: true } };
    await assert.rejects(createEngine(options), {
      code: "invalid_option",
      message: /remoteImages/,
    });
  });
});

test("the answer is that of the reference, which the browser gives too", {
  skip: !existsSync(join(SMOLVLM, "smolvlm-F16.gguf")) && `skipped: no model in ${SMOLVLM}`,
}, async () => {
  const model = join(SMOLVLM, "smolvlm-F16.gguf");
  const projector = join(SMOLVLM, "mmproj-smolvlm-F16.gguf");
  const { readFileSync } = await import("node:fs");
  const data = readFileSync(join(SMOLVLM, "smolvlm/img_128x128_rgb8.bin"));
  const engine = await createEngine({ model, projector });
  try {
    const prompt = "<|im_start|>User:<image>What is in this picture?<end_of_utterance>\nAssistant:";
    const images = [url(png({ width: 128, height: 128, data }))];
    const { choices } = await engine.completions.create({ ...greedy, prompt, images });
    assert.equal(choices[0].token_ids[0], 2561);
  } finally {
    await engine.dispose();
  }
});

describe("a server that sees", () => {
  let server;
  after(() => server?.stop());

  test("the openai package sends an image in a message", async () => {
    server = await startServe(MODEL, "--projector", PROJECTOR, "--threads", "2");
    assert.match(server.output.stderr, /images through gemma3$/m);
    const client = new OpenAI({ baseURL: `${server.origin}/v1`, apiKey: "x", maxRetries: 0 });
    const ask = (content) =>
      client.chat.completions.create({
        ...{ model: "default", max_tokens: 4, temperature: 0 },
        messages: [{ role: "user", content }],
      });
    const text = { type: "text", text: "What is it?" };
    const image_url = { url: url(png(image)) };
    const { usage } = await ask([{ type: "image_url", image_url }, text]);
    const { projector } = await inspectModel(PROJECTOR);
    const { minTokens } = projector.hyperparameters.images;
    const plain = await ask([text]);
    assert.ok(usage.prompt_tokens >= plain.usage.prompt_tokens + minTokens);
    const damaged = { url: url(Buffer.from("hello")) };
    await assert.rejects(ask([{ type: "image_url", image_url: damaged }, text]), { status: 400 });
  });

  test("wrong arguments are named", async () => {
    for (const [args, reason] of [
      [["--projector", PROJECTOR], /--projector needs the model/],
      [[MODEL, "--projector", PROJECTOR, "--projector", PROJECTOR], /given twice/],
      [[`a=${MODEL}`, "--projector", PROJECTOR], /has no name: NAME=PLACE/],
      [[`a=${MODEL}`, "--projector", `b=${PROJECTOR}`], /no model has the name b/],
    ]) {
      const { status, stderr } = await runServe("--port", "0", ...args);
      assert.equal(status, 2, stderr);
      assert.match(stderr, reason);
    }
  });

  test("models with names have their own", async () => {
    const named = await startServe(`eyes=${MODEL}`, "--projector", `eyes=${PROJECTOR}`);
    try {
      const client = new OpenAI({ baseURL: `${named.origin}/v1`, apiKey: "x", maxRetries: 0 });
      const { usage } = await client.completions.create({
        ...{ model: "eyes", prompt: "<image>What is it?", max_tokens: 1 },
        images: [url(png(image))],
      });
      assert.ok(usage.prompt_tokens > 4);
    } finally {
      await named.stop();
    }
  });
});

test("without sharp an engine starts, and an image's error says what to install", async () => {
  // From a copy of the package, which finds no other packages.
  const folder = temporaryFolder("inpage-no-sharp-");
  cpSync(join(root, "www/dist"), join(folder, "dist"), { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  const script = `
    import { createEngine } from ${JSON.stringify(pathToFileURL(join(folder, "dist/node/index.js")).href)};
    const [model, projector, png, bmp] = process.argv.slice(2);
    const engine = await createEngine({ model, projector, threads: 1 });
    const ask = (image) =>
      engine.completions.create({ model: "default", prompt: "<image>", images: [image], max_tokens: 1 });
    const failure = await ask(png).catch(({ status, code, param, message }) => ({ status, code, param, message }));
    const { usage } = await ask(bmp);
    console.log(JSON.stringify({ failure, tokens: usage.prompt_tokens }));
    await engine.dispose();
  `;
  writeFileSync(join(folder, "script.mjs"), script);
  const files = [url(png(image)), url(bmp(image), "image/bmp")];
  const args = [join(folder, "script.mjs"), MODEL, PROJECTOR, ...files];
  const output = await new Promise((done, reject) => {
    execFile(process.execPath, args, (error, stdout) => (error ? reject(error) : done(stdout)));
  });
  const { failure, tokens } = JSON.parse(output);
  assert.deepEqual(
    [failure.status, failure.code, failure.param],
    [400, "unsupported_parameter", "images"],
  );
  assert.match(failure.message, /npm install sharp/);
  // The module itself decodes this format.
  assert.ok(tokens > 1);
});
