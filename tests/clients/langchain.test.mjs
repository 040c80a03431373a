//! `@langchain/openai` with `engine.fetch`, as docs/clients.md shows it: the embedded model answers in this process.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createEngine } from "../../www/dist/node/index.js";
import { CHAT_TEMPLATE } from "./chat_template.mjs";
import { installPackages } from "./packages.mjs";

const skip = !(await installPackages()) && "skipped: LangChain cannot be installed";
const PROMPT = "Once upon a time";

describe("LangChain over engine.fetch", { skip }, () => {
  let engine;
  let given;
  let langchain;
  before(async () => {
    langchain = await import("@langchain/openai");
    engine = await createEngine({ endpoint: { chatTemplate: CHAT_TEMPLATE } });
    given = {
      ...{ model: "default", apiKey: "unused", temperature: 0, maxTokens: 12, maxRetries: 0 },
      configuration: { baseURL: "https://inpage.invalid/v1", fetch: engine.fetch },
    };
  });
  after(() => engine?.dispose());

  test("OpenAI continues a prompt as it is, whole and streamed", async () => {
    const request = { model: "default", prompt: PROMPT, temperature: 0, max_tokens: 12 };
    const { choices } = await engine.completions.create(request);
    const model = new langchain.OpenAI(given);
    assert.equal(await model.invoke(PROMPT), choices[0].text);
    let streamed = "";
    for await (const piece of await model.stream(PROMPT)) streamed += piece;
    assert.equal(streamed, choices[0].text);
  });

  test("ChatOpenAI answers, and an abort ends its stream", async () => {
    const model = new langchain.ChatOpenAI(given);
    const { content } = await model.invoke("Tell me of a fox.");
    assert.ok(content.length > 0);
    const long = new langchain.ChatOpenAI({ ...given, maxTokens: 500 });
    const controller = new AbortController();
    const reading = async () => {
      const { signal } = controller;
      for await (const _ of await long.stream("Tell me of a fox.", { signal })) controller.abort();
    };
    await assert.rejects(reading());
  });
});
