//! `inpage/prompt-api`: sessions of Chrome's Prompt API, with the embedded model and a chat template that writes a transcript.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { createEngine } from "../../www/dist/node/index.js";
import { createLanguageModel, installLanguageModel } from "../../www/dist/node/prompt_api.js";
import { callOf, fakedModel, rejectsWith } from "./fake_chat.mjs";

const chatTemplate =
  "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% if not loop.last or message.role == 'user' %}\n{% endif %}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
const CONTEXT_TOKENS = 256;

let engine;
let LanguageModel;
/** The bodies of the chats that the engine answered. */
const asked = [];

before(async () => {
  engine = await createEngine({
    endpoint: { chatTemplate },
    load: { contextTokens: CONTEXT_TOKENS },
  });
  const { create } = engine.chat.completions;
  engine.chat.completions.create = function (body, options) {
    asked.push(body);
    return create.call(this, { ...body, max_tokens: 8 }, options);
  };
  LanguageModel = createLanguageModel({ engine });
});
after(() => engine?.dispose());
afterEach(() => {
  asked.length = 0;
});

const sessionOf = (options) => LanguageModel.create({ temperature: 0, topK: 3, ...options });

test("prompts and answers become a conversation, whole and streamed", async () => {
  const session = await sessionOf({ initialPrompts: [{ role: "system", content: "Be kind." }] });
  const initialUsage = session.contextUsage;
  assert.ok(initialUsage > 0);
  assert.equal(session.contextWindow, CONTEXT_TOKENS);
  const cost = await session.measureContextUsage("Once upon a time");
  const first = await session.prompt("Once upon a time");
  assert.ok(first.length > 0);
  assert.ok(session.contextUsage > initialUsage + cost);
  let second = "";
  const stream = session.promptStreaming([
    {
      role: "user",
      content: [
        { type: "text", value: "And " },
        { type: "text", value: "then?" },
      ],
    },
  ]);
  for await (const piece of stream) second += piece;
  assert.deepEqual(asked, [
    {
      model: "default",
      messages: [
        { role: "system", content: "Be kind." },
        { role: "user", content: "Once upon a time" },
      ],
      ...{ temperature: 0, top_k: 3, stream: true },
    },
    {
      model: "default",
      messages: [
        { role: "system", content: "Be kind." },
        { role: "user", content: "Once upon a time" },
        { role: "assistant", content: first },
        { role: "user", content: "And then?" },
      ],
      ...{ temperature: 0, top_k: 3, stream: true },
    },
  ]);
  const { count } = await engine.tokenize({
    messages: [...asked[1].messages, { role: "assistant", content: second }],
    add_generation_prompt: false,
  });
  assert.equal(session.contextUsage, count);
});

test("older names mean the same, and sessions are instances", async () => {
  const session = await sessionOf();
  assert.ok(session instanceof LanguageModel);
  assert.ok((await session.clone()) instanceof LanguageModel);
  assert.deepEqual(
    [session.inputUsage, session.inputQuota],
    [session.contextUsage, session.contextWindow],
  );
  assert.equal(await session.measureInputUsage("a"), await session.measureContextUsage("a"));
});

test("a sampling mode is a temperature and a number of tokens", async () => {
  const session = await LanguageModel.create({ samplingMode: "creative" });
  assert.equal(session.samplingMode, "creative");
  await session.prompt("One day");
  assert.deepEqual([asked[0].temperature, asked[0].top_k], [1.1, 10]);
  const own = await LanguageModel.create({ temperature: 0, topK: 4 });
  assert.deepEqual([own.samplingMode, own.temperature, own.topK], [null, 0, 4]);
  await own.prompt("One day");
  assert.deepEqual([asked[1].temperature, asked[1].top_k], [0, 4]);
  // The values that the model's makers recommend.
  const usual = await LanguageModel.create();
  assert.deepEqual([usual.samplingMode, usual.temperature], ["balanced", undefined]);
  await usual.prompt("One day");
  assert.equal("temperature" in asked[2] || "top_k" in asked[2], false);
  assert.equal((await session.clone()).samplingMode, "creative");
  for (const options of [{ samplingMode: "wild" }, { samplingMode: "creative", topK: 3 }]) {
    await assert.rejects(LanguageModel.create(options), rejectsWith("TypeError"));
    await assert.rejects(LanguageModel.availability(options), rejectsWith("TypeError"));
  }
});

test("tools are called until the model answers, and belong to the conversation", async () => {
  const { model, bodies } = fakedModel([
    callOf("weather", '{"city":"Oslo"}'),
    { content: "21" },
    {},
  ]);
  const inputs = [];
  const weather = {
    ...{ name: "weather", description: "Tells it.", inputSchema: { type: "object" } },
    execute: async (input) => {
      inputs.push(input);
      return "warm";
    },
  };
  const session = await model.create({ tools: [weather] });
  assert.equal(await session.prompt("How is it?"), "21");
  assert.deepEqual(inputs, [{ city: "Oslo" }]);
  const declared = { name: "weather", description: "Tells it.", parameters: { type: "object" } };
  assert.deepEqual(bodies[0].tools, [{ type: "function", function: declared }]);
  assert.deepEqual(
    bodies[1].messages.map(({ role, content }) => [role, content]),
    [
      ["user", "How is it?"],
      ["assistant", ""],
      ["tool", "warm"],
    ],
  );
  await session.prompt("And now?");
  assert.equal(bodies[2].messages.length, 5);
  // A call and its result leave together.
  await session.append(Array(26).fill({ role: "user", content: "x" }));
  assert.equal(session.contextUsage, 28);
});

test("an error of a tool ends the prompt, and tools need names and functions", async () => {
  const { model } = fakedModel([callOf("f", "{}"), callOf("absent", "{}")]);
  const execute = () => {
    throw new RangeError("no");
  };
  const tool = { name: "f", description: "Does f.", inputSchema: { type: "object" }, execute };
  const session = await model.create({ tools: [tool] });
  await assert.rejects(session.prompt("x"), rejectsWith("RangeError"));
  assert.equal(session.contextUsage, 0);
  await assert.rejects(session.prompt("x"), rejectsWith("OperationError"));
  const circular = { type: "object" };
  circular.properties = { circular };
  for (const wrong of [
    ...[{ name: "" }, { execute: 1 }, { description: "" }, {}],
    ...[null, "x", {}, { type: "string" }, circular].map((inputSchema) => ({ inputSchema })),
    ...[{ properties: "x" }, { required: "x" }].map((more) => ({
      inputSchema: { type: "object", ...more },
    })),
  ]) {
    // The first one is right.
    const tools = [tool, { ...tool, name: Object.keys(wrong).length > 0 ? "g" : "f", ...wrong }];
    await assert.rejects(
      model.create({ tools }),
      rejectsWith("TypeError"),
      JSON.stringify(wrong.inputSchema === circular ? "circular" : wrong),
    );
  }
  const getter = {
    type: "object",
    get properties() {
      throw new RangeError("mine");
    },
  };
  const throwing = model.create({ tools: [{ ...tool, inputSchema: getter }] });
  await assert.rejects(throwing, rejectsWith("RangeError"));
});

test("an answer fits a schema, or a regular expression", async () => {
  const session = await sessionOf();
  const schema = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] };
  await session.prompt("Is it so?", { responseConstraint: schema });
  assert.deepEqual(asked[0].response_format.json_schema.schema, schema);
  const answer = await session.prompt("Yes or no?", { responseConstraint: /yes|no/ });
  assert.match(answer, /^(yes|no)$/);
});

test("an answer continues a prefix, and append adds without an answer", async () => {
  const session = await sessionOf();
  await session.append([{ role: "user", content: "Tell me a story." }]);
  assert.deepEqual(asked, []);
  const prefix = { role: "assistant", content: "Once upon a", prefix: true };
  const text = await session.prompt([prefix]);
  assert.equal(asked[0].continue_final_message, true);
  await session.prompt("More");
  assert.deepEqual(
    asked[1].messages.map(({ content }) => content),
    ["Tell me a story.", `Once upon a${text}`, "More"],
  );
});

test("a clone goes on by itself", async () => {
  const session = await sessionOf();
  const first = await session.prompt("One day");
  const clone = await session.clone();
  assert.equal(clone.contextUsage, session.contextUsage);
  await clone.prompt("Then");
  assert.ok(clone.contextUsage > session.contextUsage);
  asked.length = 0;
  await session.prompt("Else");
  assert.deepEqual(
    asked[0].messages.map(({ content }) => content),
    ["One day", first, "Else"],
  );
});

test("the oldest messages make room, and a prompt that does not fit is refused", async () => {
  const session = await sessionOf({ initialPrompts: [{ role: "system", content: "Stay." }] });
  let overflows = 0;
  session.addEventListener("contextoverflow", () => overflows++);
  let older = 0;
  session.onquotaoverflow = () => older++;
  const long = "the dog ran to the big tree and ".repeat(8);
  for (let times = 0; overflows === 0 && times < 12; times++) await session.prompt(long);
  assert.deepEqual([overflows, older], [1, 1]);
  assert.ok(session.contextUsage <= session.contextWindow);
  assert.equal(asked.at(-1).messages[0].content, "Stay.");
  assert.equal(asked.at(-1).messages[1].role, "user");
  const usage = session.contextUsage;
  await assert.rejects(session.prompt(long.repeat(8)), (error) => {
    assert.ok(error.requested > error.quota && error.quota === CONTEXT_TOKENS);
    return error.name === "QuotaExceededError";
  });
  assert.equal(session.contextUsage, usage);
  const initialPrompts = [{ role: "system", content: long.repeat(8) }];
  await assert.rejects(sessionOf({ initialPrompts }), rejectsWith("QuotaExceededError"));
});

test("an aborted or cancelled prompt leaves no trace, and the next one is answered", async () => {
  const session = await sessionOf();
  const usage = session.contextUsage;
  await assert.rejects(
    session.prompt("x", { signal: AbortSignal.abort() }),
    rejectsWith("AbortError"),
  );
  for await (const _ of session.promptStreaming("One day")) break;
  assert.equal(session.contextUsage, usage);
  const controller = new AbortController();
  const waiting = session.prompt("second", { signal: controller.signal });
  const last = session.prompt("third");
  controller.abort();
  await assert.rejects(waiting, rejectsWith("AbortError"));
  assert.ok((await last).length > 0);
  assert.deepEqual(
    asked.at(-1).messages.map(({ content }) => content),
    ["third"],
  );
});

test("a destroyed session stops, and answers no more", async () => {
  const session = await sessionOf();
  const reader = session.promptStreaming("One day").getReader();
  await reader.read();
  session.destroy();
  await assert.rejects(async () => {
    while (!(await reader.read()).done);
  }, rejectsWith("InvalidStateError"));
  assert.throws(() => session.promptStreaming("x"), rejectsWith("InvalidStateError"));
  for (const call of ["prompt", "append", "measureContextUsage", "clone"]) {
    await assert.rejects(session[call]("x"), rejectsWith("InvalidStateError"), call);
  }
});

test("what cannot be asked is refused", async () => {
  const session = await sessionOf();
  for (const [input, name] of [
    [
      [
        { role: "user", content: "x" },
        { role: "system", content: "late" },
      ],
      "TypeError",
    ],
    [[{ role: "tool", content: "x" }], "TypeError"],
    [[null], "TypeError"],
    [[{ role: "user" }], "TypeError"],
    [[{ role: "user", content: [{ type: "soup", value: "x" }] }], "TypeError"],
    [[{ role: "user", content: [{ type: "text", value: new Uint8Array(1) }] }], "TypeError"],
    [[{ role: "user", content: "x", prefix: true }], "SyntaxError"],
    [[{ role: "user", content: [{ type: "image", value: null }] }], "NotSupportedError"],
    [[{ role: "user", content: [{ type: "audio", value: new Blob([]) }] }], "NotSupportedError"],
  ]) {
    await assert.rejects(session.prompt(input), rejectsWith(name), JSON.stringify(input));
  }
  const expectedInputs = [{ type: "audio" }];
  assert.equal(await LanguageModel.availability({ expectedInputs }), "unavailable");
  await assert.rejects(sessionOf({ expectedInputs }), rejectsWith("NotSupportedError"));
});

test("availability follows the load, which monitors are told of", async () => {
  const model = createLanguageModel({ endpoint: { chatTemplate, maxQueue: 3 } });
  assert.equal(await model.availability(), "downloadable");
  const parts = [];
  const creating = model.create({
    monitor: (target) =>
      target.addEventListener("downloadprogress", ({ loaded }) => parts.push(loaded)),
  });
  assert.equal(await model.availability(), "downloading");
  const session = await creating;
  assert.equal(await model.availability(), "available");
  assert.equal(parts.at(-1), 1);
  assert.ok((await session.prompt("Hi", { responseConstraint: /[a-z]{3}/ })).length === 3);
  const { getEngine } = await import("../../www/dist/node/index.js");
  await (await getEngine({ endpoint: { chatTemplate, maxQueue: 3 } })).dispose();
  assert.equal(await model.availability(), "downloadable");
  assert.equal((await model.params()).maxTemperature, 2);
});

test("the global is set where there is none, or one that cannot run", async () => {
  try {
    const installing = installLanguageModel({ engine });
    // At once, for scripts that follow.
    assert.ok("LanguageModel" in globalThis);
    assert.equal(await installing, true);
    const session = await globalThis.LanguageModel.create();
    session.destroy();
    assert.equal(await installLanguageModel({ engine }), false);
    globalThis.LanguageModel = { availability: async () => "downloadable" };
    assert.equal(await installLanguageModel({ engine }), false);
    globalThis.LanguageModel = { availability: async () => "unavailable" };
    assert.equal(await installLanguageModel({ engine }), true);
    assert.equal(await globalThis.LanguageModel.availability(), "available");
  } finally {
    delete globalThis.LanguageModel;
  }
});

test("the platform's class of the error for the quota is used where there is one", async () => {
  const native = globalThis.QuotaExceededError;
  globalThis.QuotaExceededError = class extends DOMException {
    constructor(message, { requested, quota }) {
      super(message, "QuotaExceededError");
      Object.assign(this, { requested, quota });
    }
  };
  try {
    const { model } = fakedModel([]);
    const session = await model.create();
    const asking = session.prompt(Array(40).fill({ role: "user", content: "x" }));
    await assert.rejects(asking, (error) => {
      assert.deepEqual([error.requested, error.quota], [40, 30]);
      return error instanceof globalThis.QuotaExceededError;
    });
  } finally {
    globalThis.QuotaExceededError = native;
  }
});
