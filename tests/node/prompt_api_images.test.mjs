//! `inpage/prompt-api`: images in prompts, with an engine without a model and with a small vision model of random weights.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { createEngine } from "../../www/dist/node/index.js";
import { createLanguageModel } from "../../www/dist/node/prompt_api.js";
import { root } from "../../scripts/process.mjs";
import { png } from "../browser/image_files.mjs";
import { CONTEXT_TOKENS, fakedModel, rejectsWith } from "./fake_chat.mjs";

const FOLDER = join(root, "tests/parity/images");
const MODEL = join(FOLDER, "gemma3.gguf");
const PROJECTOR = join(FOLDER, "gemma3.mmproj.gguf");

const file = (shade) => png({ width: 24, height: 16, data: Buffer.alloc(24 * 16 * 3, shade) });
const image = (value) => ({ type: "image", value });
const text = (value) => ({ type: "text", value });
const asked = (...content) => [{ role: "user", content }];
const expectedInputs = [{ type: "image" }];

describe("with a fake engine", () => {
  const blob = new Blob([file(9)]);

  test("images go to the model beside the text, and stay in the conversation", async () => {
    const { model, bodies } = fakedModel([], { sees: true });
    const session = await model.create({ expectedInputs });
    const prompt = asked(text("Is "), text("this "), image(blob), text("a fox?"));
    assert.equal(await session.measureContextUsage(prompt), 11);
    await session.prompt(prompt);
    assert.deepEqual(bodies[0].messages, [
      {
        role: "user",
        content: [
          { type: "text", text: "Is this " },
          { type: "image_url", image_url: { url: blob } },
          { type: "text", text: "a fox?" },
        ],
      },
    ]);
    assert.equal(session.contextUsage, 12);
    const clone = await session.clone();
    await clone.append(asked(image(blob)));
    assert.deepEqual([session.contextUsage, clone.contextUsage], [12, 23]);
    await clone.prompt("And this?");
    assert.deepEqual(
      bodies[1].messages.map(({ content }) => typeof content),
      ["object", "string", "object", "string"],
    );
    // The oldest image makes room.
    let overflows = 0;
    clone.addEventListener("contextoverflow", () => overflows++);
    await clone.prompt(asked(image(blob), text("And now?")));
    assert.equal(overflows, 1);
    assert.ok(clone.contextUsage <= CONTEXT_TOKENS);
    const initialPrompts = asked(image(blob), image(blob), image(blob));
    const full = model.create({ expectedInputs, initialPrompts });
    await assert.rejects(full, (error) => {
      assert.deepEqual([error.requested, error.quota], [31, CONTEXT_TOKENS]);
      return error.name === "QuotaExceededError";
    });
  });

  test("bytes are copied when they are given", async () => {
    const { model, bodies } = fakedModel([], { sees: true });
    const session = await model.create({ expectedInputs });
    const given = Uint8Array.of(7, 1, 2, 3);
    const asking = session.prompt(asked(image(given.subarray(1)), image(given.buffer)));
    given.fill(0);
    await asking;
    const urls = bodies[0].messages[0].content.map(({ image_url }) => image_url.url);
    const copies = await Promise.all(
      urls.map(async (url) => [...new Uint8Array(await url.arrayBuffer())]),
    );
    assert.deepEqual(copies, [
      [1, 2, 3],
      [7, 1, 2, 3],
    ]);
  });

  test("images are refused where none is expected, and where none can be", async () => {
    const { model } = fakedModel([], { sees: true });
    const prompt = asked(image(blob));
    const session = await model.create();
    for (const call of ["prompt", "append", "measureContextUsage"]) {
      await assert.rejects(session[call](prompt), rejectsWith("NotSupportedError"), call);
    }
    await assert.rejects(
      model.create({ initialPrompts: prompt }),
      rejectsWith("NotSupportedError"),
    );
    const seeing = await model.create({ expectedInputs });
    const said = [{ role: "assistant", content: [image(blob)] }];
    await assert.rejects(seeing.prompt(said), rejectsWith("NotSupportedError"));
    for (const value of [null, "a.png", {}]) {
      await assert.rejects(seeing.prompt(asked(image(value))), rejectsWith("TypeError"));
    }
    await assert.rejects(seeing.prompt(asked(text(blob))), rejectsWith("TypeError"));

    const { model: blind } = fakedModel([]);
    assert.equal(await blind.availability({ expectedInputs }), "unavailable");
    await assert.rejects(blind.create({ expectedInputs }), rejectsWith("NotSupportedError"));
  });

  test("what options tell is known before the load", async () => {
    for (const [options, availability] of [
      [{ model: MODEL }, "unavailable"],
      [{ model: MODEL, projector: PROJECTOR }, "downloadable"],
      [{ model: "smolvlm-256m-instruct" }, "downloadable"],
      [{ model: "qwen3-0.6b" }, "unavailable"],
      // Whether a folder has a tower, its load shows.
      [{ model: "hf:owner/name" }, "downloadable"],
      [{ models: { a: MODEL } }, "downloadable"],
      [{}, "unavailable"],
    ]) {
      const model = createLanguageModel(options);
      assert.equal(await model.availability({ expectedInputs }), availability);
    }
  });
});

describe("with a model that sees", () => {
  let engine;
  let session;
  before(async () => {
    const chatTemplate =
      "{% for message in messages %}{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}{% if part.type == 'image' %}<start_of_image>{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %};{% endfor %}";
    engine = await createEngine({
      ...{ model: MODEL, projector: PROJECTOR, threads: 2 },
      endpoint: { chatTemplate, defaultMaxMessageTokens: 4 },
    });
    const model = createLanguageModel({ engine });
    session = await model.create({ expectedInputs, temperature: 0 });
  });
  after(() => engine?.dispose());

  test("it is asked about the image, which is counted without running it", async () => {
    const plain = await session.measureContextUsage(asked(text("What?")));
    const prompt = asked(image(file(200)), text("What?"));
    const cost = await session.measureContextUsage(prompt);
    assert.ok(cost > plain + 4, `${cost}`);
    const answers = [];
    for (const shade of [200, 200, 30]) {
      const one = await session.clone();
      answers.push(await one.prompt(asked(image(file(shade)), text("What?"))));
      assert.ok(one.contextUsage >= cost);
    }
    assert.equal(answers[0], answers[1]);
    assert.notEqual(answers[0], answers[2]);
  });

  test("bytes that are no image are an invalid state, and the next prompt is answered", async () => {
    const one = await session.clone();
    for (const value of [file(1).subarray(0, 60), Buffer.from("hello")]) {
      const prompt = asked(image(value), text("What?"));
      await assert.rejects(one.prompt(prompt), rejectsWith("InvalidStateError"));
      await assert.rejects(one.measureContextUsage(prompt), rejectsWith("InvalidStateError"));
    }
    assert.equal(typeof (await one.prompt("What?")), "string");
  });

  test("images that exceed the context are told with their tokens", async () => {
    const one = await session.clone();
    const many = asked(...Array(80).fill(image(file(5))));
    await assert.rejects(one.prompt(many), (error) => {
      assert.ok(error.requested > error.quota, `${error.requested} of ${error.quota}`);
      return error.name === "QuotaExceededError";
    });
  });
});
