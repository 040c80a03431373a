//! Anthropic's Messages API through its clients for JavaScript and Python against the native server. They are installed here on
//! demand; without the registries their tests are skipped.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { root, run } from "../../scripts/process.mjs";
import { CHAT_TEMPLATE } from "./chat_template.mjs";
import { startEndpoint } from "./endpoint.mjs";
import { installPackages } from "./packages.mjs";
import { ANTHROPIC, provideVenv } from "./python.mjs";

const WEATHER = {
  type: "object",
  properties: { city: { enum: ["Rome", "Oslo"] }, days: { enum: [1, 2] } },
  required: ["city", "days"],
  additionalProperties: false,
};
const TOOLS = [{ name: "weather", description: "The weather", input_schema: WEATHER }];
const GREEDY = {
  model: "default",
  messages: [{ role: "user", content: "Tell me of a fox." }],
  temperature: 0,
  max_tokens: 12,
};
const ONE_CALL = {
  ...GREEDY,
  max_tokens: 200,
  tools: TOOLS,
  tool_choice: { type: "any", disable_parallel_tool_use: true },
};

// Before any suite: the tests of the file end when all suites that are known by then have ended.
const isInstalled = await installPackages();
const { python, reason } = await provideVenv("clients-venv-anthropic", ANTHROPIC);

let endpoint;

before(async () => {
  endpoint = await startEndpoint();
  await endpoint.hooks({ switches: { chatTemplate: CHAT_TEMPLATE } });
});
after(() => endpoint?.close());

const skip = !isInstalled && "skipped: the packages cannot be installed";
describe("@anthropic-ai/sdk", { skip }, () => {
  let Anthropic;
  before(async () => {
    ({ default: Anthropic } = await import("@anthropic-ai/sdk"));
  });
  const client = (options = {}) =>
    new Anthropic({ baseURL: endpoint.origin, apiKey: "x", maxRetries: 0, ...options });

  test("answers whole and streamed", async () => {
    const { messages } = client();
    const request = { ...GREEDY, system: "Be brief.", ignore_eos: true };
    const whole = await messages.create(request);
    assert.equal(whole.type, "message");
    assert.equal(whole.stop_reason, "max_tokens");
    assert.equal(whole.usage.output_tokens, 12);
    assert.match(whole._request_id, /^req_/);
    const stream = messages.stream(request);
    let text = "";
    stream.on("text", (delta) => {
      text += delta;
    });
    const final = await stream.finalMessage();
    assert.equal(final.content[0].text, whole.content[0].text);
    assert.equal(text, whole.content[0].text);
    assert.equal(final.usage.output_tokens, 12);
    assert.equal(final.stop_reason, "max_tokens");
    const types = [];
    for await (const event of await messages.create({ ...GREEDY, stream: true })) {
      types.push(event.type);
    }
    assert.equal(types[0], "message_start");
    assert.equal(types.at(-1), "message_stop");
  });

  test("ends at a stop sequence", async () => {
    const { messages } = client();
    const whole = await messages.create(GREEDY);
    const [, second] = whole.content[0].text.trim().split(" ");
    const stopped = await messages.create({ ...GREEDY, stop_sequences: [second] });
    assert.deepEqual([stopped.stop_reason, stopped.stop_sequence], ["stop_sequence", second]);
  });

  test("calls the tool that it must call, and takes its result", async () => {
    const { messages } = client();
    const whole = await messages.create(ONE_CALL);
    assert.equal(whole.stop_reason, "tool_use");
    const [call] = whole.content;
    assert.equal(call.name, "weather");
    assert.ok(WEATHER.properties.city.enum.includes(call.input.city), call.input.city);
    assert.ok(WEATHER.properties.days.enum.includes(call.input.days), `${call.input.days}`);
    const streamed = await messages.stream(ONE_CALL).finalMessage();
    assert.deepEqual(streamed.content[0].input, call.input);
    const next = await messages.create({
      ...GREEDY,
      tools: TOOLS,
      tool_choice: { type: "none" },
      messages: [
        ...GREEDY.messages,
        { role: "assistant", content: whole.content },
        {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: call.id, content: "sunny" }],
        },
      ],
    });
    assert.ok(next.content[0].text.length > 0);
  });

  test("a call that max_tokens cuts off is a call", async () => {
    const { messages } = client();
    const cut = { ...ONE_CALL, max_tokens: 24 };
    const whole = await messages.create(cut);
    assert.equal(whole.stop_reason, "max_tokens");
    assert.equal(whole.content[0].type, "tool_use");
    const streamed = await messages.stream(cut).finalMessage();
    assert.equal(streamed.stop_reason, "max_tokens");
    assert.equal(streamed.content[0].name, "weather");
  });

  test("writes what a JSON schema demands", async () => {
    const answer = await client().messages.create({
      ...GREEDY,
      max_tokens: 200,
      output_config: { format: { type: "json_schema", schema: WEATHER } },
    });
    const { city } = JSON.parse(answer.content[0].text);
    assert.ok(WEATHER.properties.city.enum.includes(city), city);
  });

  test("counts tokens", async () => {
    const { messages } = client();
    const { max_tokens, temperature, ...counted } = GREEDY;
    const { input_tokens } = await messages.countTokens(counted);
    const { usage } = await messages.create(GREEDY);
    assert.equal(input_tokens, usage.input_tokens + usage.cache_read_input_tokens);
  });

  test("throws its own classes", async () => {
    const { messages } = client();
    await assert.rejects(messages.create({ ...GREEDY, temperature: 1.5 }), (error) => {
      assert.ok(error instanceof Anthropic.BadRequestError);
      assert.equal(error.type, "invalid_request_error");
      assert.match(error.requestID, /^req_/);
      return true;
    });
    await assert.rejects(messages.create({ ...GREEDY, model: "no/such" }), Anthropic.NotFoundError);
    await endpoint.hooks({ failAfterTokens: 3 });
    try {
      const long = { ...GREEDY, max_tokens: 200, ignore_eos: true };
      await assert.rejects(messages.create(long), Anthropic.InternalServerError);
      await endpoint.hooks({ failAfterTokens: 3 });
      const stream = messages.stream(long);
      await assert.rejects(stream.finalMessage(), (error) => error.type === "api_error");
    } finally {
      await endpoint.hooks({ failAfterTokens: null });
    }
  });

  test("reads the errors of requests that no route answers", async () => {
    const switches = { chatTemplate: CHAT_TEMPLATE, apiKey: "k", maxBodyBytes: 4096 };
    await endpoint.hooks({ switches });
    const { messages } = client({ apiKey: "k" });
    const long = [{ role: "user", content: "a".repeat(5000) }];
    const is = (name, type) => (error) => {
      assert.ok(error instanceof Anthropic[name], `${error}`);
      assert.equal(error.type, type);
      assert.match(error.requestID, /^req_/);
      return true;
    };
    try {
      await messages.create(GREEDY);
      const broken = {
        body: new Blob(["{"]),
        headers: { "content-type": "application/json" },
      };
      const foreign = { headers: { origin: "https://evil.example" } };
      const own = client({ apiKey: "k" });
      for (const [send, name, type] of [
        [() => client().messages.create(GREEDY), "AuthenticationError", "authentication_error"],
        [() => messages.create({ ...GREEDY, messages: long }), "APIError", "request_too_large"],
        [() => messages.batches.list(), "NotFoundError", "not_found_error"],
        [() => own.get("/v1/messages"), "APIError", "invalid_request_error"],
        [() => own.post("/v1/messages", broken), "BadRequestError", "invalid_request_error"],
        [() => messages.create(GREEDY, foreign), "PermissionDeniedError", "permission_error"],
      ]) {
        await assert.rejects(send, is(name, type));
      }
    } finally {
      await endpoint.hooks({ switches: { chatTemplate: CHAT_TEMPLATE } });
    }
  });

  test("leaving a stream stops the generation", async () => {
    const request = { ...GREEDY, max_tokens: 400, stream: true, ignore_eos: true };
    for await (const _ of await client().messages.create(request)) break;
    await endpoint.idle();
  });
});

describe("anthropic for Python", { skip: reason && `skipped: ${reason}` }, () => {
  test("its script passes", async () => {
    const path = join(root, "tests/clients/anthropic_client.py");
    let output = "";
    const status = await run(python, [path, endpoint.origin], {
      timeout_ms: 120_000,
      onOutput: (text) => {
        output += text;
      },
    });
    assert.equal(status, 0, output);
    await endpoint.idle();
  });
});
