//! The Responses API through client libraries against the native server: the official JavaScript client and the AI SDK. The
//! latter is installed here on demand; without npm's registry its tests are skipped.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { CHAT_TEMPLATE } from "./chat_template.mjs";
import { startEndpoint } from "./endpoint.mjs";
import { installPackages, OPENAI_VERSIONS } from "./packages.mjs";

const WEATHER = {
  type: "object",
  properties: { city: { enum: ["Rome", "Oslo"] }, days: { enum: [1, 2] } },
  required: ["city", "days"],
  additionalProperties: false,
};
const TOOLS = [{ type: "function", name: "weather", parameters: WEATHER, strict: true }];

// Before any suite: the tests of the file end when all suites that are known by then have ended.
const isInstalled = await installPackages();

let endpoint;

before(async () => {
  endpoint = await startEndpoint();
  await endpoint.hooks({ switches: { chatTemplate: CHAT_TEMPLATE } });
});
after(() => endpoint?.close());

for (const [name, specifier] of OPENAI_VERSIONS) {
  const isMissing = specifier !== "openai" && !isInstalled;
  const skip = isMissing && "skipped: the packages cannot be installed";
  describe(`${name} for JavaScript`, { skip }, () => {
    let OpenAI;
    before(async () => {
      ({ default: OpenAI } = await import(specifier));
    });
    const client = () =>
      new OpenAI({ baseURL: `${endpoint.origin}/v1`, apiKey: "x", maxRetries: 0 });
    const greedy = {
      model: "default",
      input: "Tell me of a fox.",
      temperature: 0,
      max_output_tokens: 12,
    };

    test("answers whole and streamed", async () => {
      const { responses } = client();
      const whole = await responses.create({ ...greedy, instructions: "Be brief." });
      assert.equal(whole.object, "response");
      assert.ok(whole.output_text.length > 0);
      assert.ok(["completed", "incomplete"].includes(whole.status));
      assert.equal(whole.instructions, "Be brief.");
      const request = { ...greedy, instructions: "Be brief.", stream: true };
      let text = "";
      const types = [];
      for await (const event of await responses.create(request)) {
        assert.equal(event.sequence_number, types.length);
        types.push(event.type);
        if (event.type === "response.output_text.delta") text += event.delta;
      }
      assert.equal(text, whole.output_text);
      assert.deepEqual(types.slice(0, 2), ["response.created", "response.in_progress"]);
      assert.equal(types.at(-1), `response.${whole.status}`);
      const final = await responses.stream(request).finalResponse();
      assert.equal(final.output_text, whole.output_text);
      assert.equal(final.usage.output_tokens, whole.usage.output_tokens);
    });

    test("calls the tool that it must call, and takes its result", async () => {
      const { responses } = client();
      const request = {
        ...greedy,
        max_output_tokens: 200,
        tools: TOOLS,
        tool_choice: "required",
        parallel_tool_calls: false,
      };
      const whole = await responses.create(request);
      const call = whole.output.find((item) => item.type === "function_call");
      assert.equal(call.name, "weather");
      const { city, days } = JSON.parse(call.arguments);
      assert.ok(WEATHER.properties.city.enum.includes(city), city);
      assert.ok(WEATHER.properties.days.enum.includes(days), `${days}`);
      const streamed = await responses.stream(request).finalResponse();
      const streamedCall = streamed.output.find((item) => item.type === "function_call");
      assert.equal(streamedCall.arguments, call.arguments);
      const next = await responses.create({
        ...greedy,
        tools: TOOLS,
        tool_choice: "none",
        input: [
          { role: "user", content: greedy.input },
          ...whole.output,
          { type: "function_call_output", call_id: call.call_id, output: "sunny" },
        ],
      });
      assert.ok(next.output_text.length > 0);
    });

    test("writes what a JSON schema demands", async () => {
      const answer = await client().responses.create({
        ...greedy,
        max_output_tokens: 200,
        text: { format: { type: "json_schema", name: "weather", schema: WEATHER, strict: true } },
      });
      const { city } = JSON.parse(answer.output_text);
      assert.ok(WEATHER.properties.city.enum.includes(city), city);
    });

    test("lists log-probabilities", async () => {
      const answer = await client().responses.create({
        ...greedy,
        include: ["message.output_text.logprobs"],
        top_logprobs: 2,
      });
      const [{ logprobs }] = answer.output[0].content;
      assert.equal(logprobs[0].top_logprobs.length, 2);
    });

    test("compacts a conversation and continues it", async () => {
      const { responses } = client();
      const input = [
        { role: "user", content: "My name is Ada. Tell me of a fox." },
        { role: "assistant", content: "The fox ran home." },
      ];
      const request = { model: "default", input, prompt_cache_key: "fox" };
      const compacted = await responses.compact(request);
      assert.match(compacted.id, /^resp_/);
      assert.equal(compacted.object, "response.compaction");
      const [kept, compaction, ...others] = compacted.output;
      assert.deepEqual(others, []);
      assert.equal(kept.content[0].text, input[0].content);
      assert.deepEqual([kept.role, compaction.type], ["user", "compaction"]);
      assert.ok(compacted.usage.output_tokens > 0);
      const question = { role: "user", content: "And then?" };
      const next = { ...greedy, input: [...compacted.output, question] };
      const answer = await responses.create(next);
      assert.ok(answer.output_text.length > 0);
      const { input_tokens } = await responses.inputTokens.count({
        ...next,
        max_output_tokens: null,
      });
      assert.equal(input_tokens, answer.usage.input_tokens);
      const damaged = { ...compaction, encrypted_content: compaction.encrypted_content.slice(4) };
      await assert.rejects(responses.create({ ...next, input: [damaged] }), (error) => {
        assert.deepEqual([error.status, error.code, error.param], [400, "invalid_value", "input"]);
        return true;
      });
      const stored = responses.compact({ ...request, previous_response_id: "resp_1" });
      await assert.rejects(stored, { status: 400, param: "previous_response_id" });
    });

    test("throws what the endpoint refuses", async () => {
      const refused = client().responses.create({ ...greedy, previous_response_id: "resp_x" });
      await assert.rejects(refused, (error) => {
        assert.equal(error.status, 400);
        assert.equal(error.code, "unsupported_parameter");
        assert.equal(error.param, "previous_response_id");
        return true;
      });
    });
  });
}

describe("AI SDK", { skip: !isInstalled && "skipped: its packages cannot be installed" }, () => {
  const prompt = "Tell me of a fox.";
  let sdk;
  let model;
  let z;

  before(async () => {
    sdk = await import("ai");
    ({ z } = await import("zod"));
    const { createOpenAI } = await import("@ai-sdk/openai");
    const provider = createOpenAI({ baseURL: `${endpoint.origin}/v1`, apiKey: "x" });
    model = provider.responses("default");
  });

  test("generates and streams text", async () => {
    const settings = { model, prompt, temperature: 0, maxOutputTokens: 12, maxRetries: 0 };
    const { text, usage } = await sdk.generateText(settings);
    assert.ok(text.length > 0);
    assert.ok(usage.inputTokens > 0);
    let streamed = "";
    for await (const part of sdk.streamText(settings).textStream) streamed += part;
    assert.equal(streamed, text);
  });

  test("generates an object", async () => {
    const { output } = await sdk.generateText({
      model,
      prompt: "The weather?",
      temperature: 0,
      maxOutputTokens: 200,
      maxRetries: 0,
      output: sdk.Output.object({
        schema: z.object({
          city: z.enum(["Rome", "Oslo"]),
          days: z.union([z.literal(1), z.literal(2)]),
        }),
      }),
    });
    assert.ok(["Rome", "Oslo"].includes(output.city));
  });

  test("calls a tool, and sends its result", async () => {
    const asked = [];
    const { steps } = await sdk.generateText({
      model,
      prompt: "The weather?",
      temperature: 0,
      maxOutputTokens: 200,
      maxRetries: 0,
      toolChoice: "required",
      providerOptions: { openai: { store: false, parallelToolCalls: false } },
      stopWhen: sdk.stepCountIs(2),
      tools: {
        weather: sdk.tool({
          description: "The weather",
          inputSchema: z.object({ city: z.enum(["Rome", "Oslo"]) }),
          strict: true,
          execute: async (input) => {
            asked.push(input);
            return "sunny";
          },
        }),
      },
    });
    assert.equal(steps.length, 2);
    for (const { city } of asked) assert.ok(["Rome", "Oslo"].includes(city));
  });
});
