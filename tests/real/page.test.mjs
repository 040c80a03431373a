//! SmolLM2-135M-Instruct in a page. On the GPU: the perplexity of a text, and the greedy tokens of llama.cpp. On the CPU: what an app with
//! the `openai` package does, which is chat, forced tools, JSON schemas, and a second turn whose prompt is cached.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startHarness, wasmIsBuilt } from "../browser/harness.mjs";
import { APART, perplexity, provideRealModels, references } from "./models.mjs";

const MAX_GPU_ERROR = 0.01;

const models = await provideRealModels();
const reason = models.reason ?? (!wasmIsBuilt && "the wasm module is not built");
const { smolLm2 } = references();

describe("SmolLM2 in a page", { skip: reason && `skipped: ${reason}`, concurrency: false }, () => {
  let harness;
  before(async () => {
    harness = await startHarness({ mounts: { "/smollm2.gguf": models.smolLm2 }, isolated: true });
  });
  after(() => harness?.close());

  /** A page with the model on this device. */
  async function openOn(device) {
    const page = await harness.open();
    await page.evaluate(async (device) => {
      window.engine = await inpage.createEngine({
        ...{ model: { url: "/smollm2.gguf", id: "smollm2" }, device },
        load: { contextTokens: 1024 },
      });
      window.openai = client({ fetch: engine.fetch });
    }, device);
    return page;
  }

  describe("on the GPU", () => {
    let page;
    before(async () => {
      page = await openOn("webgpu");
      assert.equal(await page.evaluate(async () => (await engine.info()).device), "webgpu");
    });
    after(() => page?.context().close());

    test("the perplexity of a text is within 1 % of the exact one", async () => {
      const logprobs = await page.evaluate(async (prompt) => {
        const body = { model: "default", prompt, echo: true, max_tokens: 0, logprobs: 0 };
        const { choices } = await engine.completions.create(body);
        return choices[0].logprobs.token_logprobs.slice(1);
      }, models.text);
      assert.equal(logprobs.length, smolLm2.logprobs.length);
      const found = perplexity(logprobs);
      const error = Math.abs(found / smolLm2.perplexity - 1);
      assert.ok(error < MAX_GPU_ERROR, `${found} instead of ${smolLm2.perplexity}`);
    });

    test("each greedy token of llama.cpp is the best one, unless the second is close", async () => {
      const ranks = await page.evaluate(async (continuations) => {
        const all = [];
        for (const { ids, greedy } of continuations) {
          const body = { model: "default", prompt: [...ids, ...greedy], temperature: 0 };
          const asked = { ...body, max_tokens: 1, prompt_logprobs: 1 };
          const { choices } = await engine.completions.create(asked);
          const listed = choices[0].prompt_logprobs.slice(ids.length);
          all.push(greedy.map((id, i) => listed[i][id].rank));
        }
        return all;
      }, smolLm2.continuations);
      for (const [prompt, { margins }] of smolLm2.continuations.entries()) {
        const wrong = ranks[prompt].flatMap((rank, i) =>
          rank > 1 && margins[i] >= APART ? i : [],
        );
        assert.deepEqual(wrong, [], `prompt ${prompt + 1}`);
      }
    });
  });

  describe("with the openai package, on the CPU", () => {
    let page;
    before(async () => {
      page = await openOn("cpu");
    });
    after(async () => {
      await page?.evaluate(() => engine.dispose());
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
});
