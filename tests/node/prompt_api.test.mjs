//! `inpage/prompt-api`: sessions of Chrome's Prompt API, with the embedded model and a chat template that writes a transcript.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { createEngine } from "../../www/dist/node/index.js";
import { createLanguageModel, installLanguageModel } from "../../www/dist/node/prompt_api.js";

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

const rejectsWith = (name) => (error) => error.name === name;
const sessionOf = (options) => LanguageModel.create({ temperature: 0, topK: 3, ...options });

test("prompts and answers become a conversation, whole and streamed", async () => {
  const session = await sessionOf({ initialPrompts: [{ role: "system", content: "Be kind." }] });
  const initialUsage = session.inputUsage;
  assert.ok(initialUsage > 0);
  assert.equal(session.inputQuota, CONTEXT_TOKENS);
  const cost = await session.measureInputUsage("Once upon a time");
  const first = await session.prompt("Once upon a time");
  assert.ok(first.length > 0);
  assert.ok(session.inputUsage > initialUsage + cost);
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
  assert.equal(session.inputUsage, count);
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
  assert.equal(clone.inputUsage, session.inputUsage);
  await clone.prompt("Then");
  assert.ok(clone.inputUsage > session.inputUsage);
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
  session.addEventListener("quotaoverflow", () => overflows++);
  const long = "the dog ran to the big tree and ".repeat(8);
  for (let times = 0; overflows === 0 && times < 12; times++) await session.prompt(long);
  assert.equal(overflows, 1);
  assert.ok(session.inputUsage <= session.inputQuota);
  assert.equal(asked.at(-1).messages[0].content, "Stay.");
  assert.equal(asked.at(-1).messages[1].role, "user");
  const usage = session.inputUsage;
  await assert.rejects(session.prompt(long.repeat(8)), (error) => {
    assert.ok(error.requested > error.quota && error.quota === CONTEXT_TOKENS);
    return error.name === "QuotaExceededError";
  });
  assert.equal(session.inputUsage, usage);
  const initialPrompts = [{ role: "system", content: long.repeat(8) }];
  await assert.rejects(sessionOf({ initialPrompts }), rejectsWith("QuotaExceededError"));
});

test("an aborted or cancelled prompt leaves no trace, and the next one is answered", async () => {
  const session = await sessionOf();
  const usage = session.inputUsage;
  await assert.rejects(
    session.prompt("x", { signal: AbortSignal.abort() }),
    rejectsWith("AbortError"),
  );
  for await (const _ of session.promptStreaming("One day")) break;
  assert.equal(session.inputUsage, usage);
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
  }, rejectsWith("AbortError"));
  for (const call of ["prompt", "append", "measureInputUsage", "clone"]) {
    await assert.rejects(session[call]("x"), rejectsWith("InvalidStateError"), call);
  }
});

test("what cannot be asked is refused", async () => {
  const session = await sessionOf();
  for (const [input, name] of [
    [[{ role: "system", content: "late" }], "TypeError"],
    [[{ role: "tool", content: "x" }], "TypeError"],
    [[{ role: "user", content: "x", prefix: true }], "TypeError"],
    [[{ role: "user", content: [{ type: "image", value: null }] }], "NotSupportedError"],
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

test("the global is set only where there is none", async () => {
  try {
    assert.equal(installLanguageModel({ engine }), true);
    const session = await globalThis.LanguageModel.create();
    session.destroy();
    assert.equal(installLanguageModel({ engine }), false);
  } finally {
    delete globalThis.LanguageModel;
  }
});
