//! SmolLM2-135M-Instruct in a page on the CPU: what an app with the `openai` package does, which is chat, forced tools, JSON schemas, and a
//! second turn whose prompt is cached.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startHarness, wasmIsBuilt } from "../browser/harness.mjs";
import { provideRealModels } from "./models.mjs";
import { MODEL_URL, openSmolLm2 } from "./smollm2_page.mjs";

const models = await provideRealModels();
const reason = models.reason ?? (!wasmIsBuilt && "the wasm module is not built");
const options = { skip: reason && `skipped: ${reason}`, concurrency: false };

describe("SmolLM2 in a page, with the openai package, on the CPU", options, () => {
  let harness;
  let page;
  before(async () => {
    harness = await startHarness({ mounts: { [MODEL_URL]: models.smolLm2 }, isolated: true });
    page = await openSmolLm2(harness, "cpu");
  });
  after(async () => {
    await page?.evaluate(() => engine.dispose());
    await harness?.close();
  });
  const ask = (body) =>
    page.evaluate((body) => openai.chat.completions.create(body), {
      ...{ model: "default", temperature: 0, max_tokens: 100, ...body },
    });
  const user = (content) => ({ role: "user", content });

  test("chat streams an answer that ends by itself", async () => {
    const answer = await page.evaluate(
      async (messages) => {
        const body = { model: "default", messages, temperature: 0, max_tokens: 100 };
        const stream = await openai.chat.completions.create({ ...body, stream: true });
        let [content, finish] = ["", null];
        for await (const { choices } of stream) {
          content += choices[0]?.delta.content ?? "";
          finish = choices[0]?.finish_reason ?? finish;
        }
        return { content, finish };
      },
      [user("Write one sentence about the sea.")],
    );
    assert.match(answer.content, /\bsea\b/i);
    assert.equal(answer.finish, "stop");
  });

  test("a second turn finds the first one cached", async () => {
    const messages = [user("Name three colours of the rainbow.")];
    const first = await ask({ messages });
    messages.push(first.choices[0].message, user("Name one more."));
    const second = await ask({ messages });
    const { cached_tokens } = second.usage.prompt_tokens_details;
    assert.equal(first.usage.prompt_tokens_details?.cached_tokens ?? 0, 0);
    // All but the last, unfinished page of the first turn.
    const known = first.usage.prompt_tokens + first.usage.completion_tokens;
    assert.ok(cached_tokens > known - 64, `${cached_tokens} of ${known}`);
    assert.ok(cached_tokens < second.usage.prompt_tokens);
    assert.notEqual(second.choices[0].message.content, "");
  });

  test("a forced tool is called with the arguments of its schema", async () => {
    const parameters = {
      ...{ type: "object", required: ["city", "unit"] },
      properties: { city: { type: "string" }, unit: { enum: ["celsius", "fahrenheit"] } },
    };
    const weather = { name: "get_weather", description: "The weather of a city", parameters };
    const { choices } = await ask({
      messages: [user("What is the weather in Oslo, in celsius?")],
      tools: [{ type: "function", function: weather }],
      tool_choice: { type: "function", function: { name: "get_weather" } },
    });
    const [call] = choices[0].message.tool_calls;
    assert.equal(call.function.name, "get_weather");
    const given = JSON.parse(call.function.arguments);
    assert.match(given.city, /Oslo/i);
    assert.equal(given.unit, "celsius");
  });

  test("an answer follows a JSON schema", async () => {
    const schema = {
      ...{ type: "object", required: ["country", "capital", "isInEurope"] },
      properties: {
        country: { type: "string", maxLength: 40 },
        capital: { type: "string", maxLength: 40 },
        isInEurope: { type: "boolean" },
      },
      additionalProperties: false,
    };
    const { choices } = await ask({
      messages: [user("Describe France as JSON: country, capital, isInEurope.")],
      response_format: { type: "json_schema", json_schema: { name: "c", schema, strict: true } },
    });
    const answer = JSON.parse(choices[0].message.content);
    assert.deepEqual(Object.keys(answer), ["country", "capital", "isInEurope"]);
    assert.match(answer.capital, /Paris/);
    assert.equal(typeof answer.isInEurope, "boolean");
  });
});
