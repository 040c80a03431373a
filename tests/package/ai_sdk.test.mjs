//! `inpage/ai-sdk` in AI SDK 6 and 7: with the embedded model and small ones in this process, and with answers of a fake engine.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { root, run } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { createInpage, inpage } from "../../www/dist/node/ai_sdk.js";
import { createEngine } from "../../www/dist/node/index.js";
import { CHAT_TEMPLATE } from "../clients/chat_template.mjs";
import { installPackages } from "../clients/packages.mjs";

const skip = !(await installPackages()) && "skipped: the AI SDK cannot be installed";
const clients = createRequire(join(root, "tests/clients/package.json"));
const prompt = "Once upon a time";
const greedy = { prompt, temperature: 0, maxOutputTokens: 12 };

for (const name of ["ai", "ai-6"]) {
  describe(`the package ${name}`, { skip }, () => {
    let sdk;
    let engine;
    let model;
    /** The bodies that the engine was asked with. */
    const bodies = [];
    before(async () => {
      sdk = await import(pathToFileURL(clients.resolve(name)).href);
      engine = await createEngine();
      const { create } = engine.completions;
      engine.completions.create = function (body, options) {
        bodies.push(body);
        return create.call(this, body, options);
      };
      model = createInpage({ engine }).completionModel();
    });
    after(() => engine?.dispose());

    test("a prompt is continued as it is, whole and streamed", async () => {
      const expected = await engine.completions.create({
        model: "default",
        prompt,
        temperature: 0,
        max_tokens: 12,
      });
      const { text, usage, finishReason, response } = await sdk.generateText({ model, ...greedy });
      assert.equal(text, expected.choices[0].text);
      assert.equal(usage.inputTokens, expected.usage.prompt_tokens);
      assert.equal(usage.outputTokens, expected.usage.completion_tokens);
      assert.equal(finishReason, expected.choices[0].finish_reason);
      assert.equal(response.modelId, "tales");
      let streamed = "";
      const stream = sdk.streamText({ model, ...greedy });
      for await (const part of stream.textStream) streamed += part;
      assert.equal(streamed, text);
      assert.equal((await stream.usage).outputTokens, usage.outputTokens);
      assert.equal(await stream.finishReason, finishReason);
    });

    test("options of the call and of the provider become fields", async () => {
      bodies.length = 0;
      await sdk.generateText({
        ...{ model, ...greedy, topP: 0.5, topK: 7, seed: 3, stopSequences: ["."] },
        ...{ presencePenalty: 0.25, frequencyPenalty: 0.5 },
        providerOptions: { inpage: { min_p: 0.1, max_tokens: 3 }, other: { echo: true } },
      });
      assert.deepEqual(bodies, [
        {
          ...{ model: "default", prompt, max_tokens: 3, temperature: 0, top_p: 0.5, top_k: 7 },
          ...{ presence_penalty: 0.25, frequency_penalty: 0.5, stop: ["."], seed: 3, min_p: 0.1 },
          stream: false,
        },
      ]);
    });

    test("an object has the form of its schema", async () => {
      const { z } = clients("zod");
      const schema = z.object({ city: z.enum(["Rome", "Oslo"]) });
      const output = sdk.Output.object({ schema });
      const found = await sdk.generateText({ model, ...greedy, maxOutputTokens: 200, output });
      assert.ok(schema.safeParse(found.output).success);
    });

    test("an abort ends the generation, and errors are those of the endpoint", async () => {
      const controller = new AbortController();
      const stream = sdk.streamText({
        ...{ model, prompt, maxOutputTokens: 500, abortSignal: controller.signal, onError() {} },
      });
      for await (const _ of stream.textStream) controller.abort();
      while ((await engine.info()).activeGenerations > 0)
        await new Promise((done) => setTimeout(done, 10));
      const other = createInpage({ engine }).completionModel("other");
      const failing = sdk.generateText({ model: other, ...greedy, maxRetries: 0 });
      await assert.rejects(failing, { name: "InpageError", code: "model_not_found" });
    });

    test("a conversation is refused, and tools are reported", async () => {
      const messages = [
        { role: "user", content: "Hi" },
        { role: "assistant", content: "Hello" },
        { role: "user", content: "How are you?" },
      ];
      await assert.rejects(sdk.generateText({ model, messages }), /a completion takes one prompt/);
      const tool = sdk.tool({ inputSchema: sdk.jsonSchema({ type: "object" }) });
      const { warnings } = await sdk.generateText({ model, ...greedy, tools: { tool } });
      assert.deepEqual(
        warnings.map(({ type, feature }) => [type, feature]),
        [["unsupported", "tools"]],
      );
    });

    test("the types are those of a model", async () => {
      const file = join(temporaryFolder("inpage-ai-types-"), "use.mts");
      const types = join(dirname(clients.resolve(name)), "index.d.ts");
      writeFileSync(
        file,
        `import { createProviderRegistry, embed, generateText, rerank } from ${JSON.stringify(types.replace(/d\.ts$/, "js"))};
import { createInpage, inpage } from ${JSON.stringify(join(root, "www/dist/ai_sdk/index.js"))};
await generateText({ model: inpage("default"), messages: [{ role: "user", content: "Hi" }] });
await embed({ model: inpage.embeddingModel("texts"), value: "a text" });
await rerank({ model: inpage.rerankingModel("ranks"), query: "a", documents: ["b"] });
createProviderRegistry({ inpage: { ...inpage, imageModel: () => { throw new Error("none"); } } });
await generateText({ model: createInpage({ endpoint: { maxQueue: 4 } }).completionModel(), prompt: "Once" });
`,
      );
      const tsc = [join(root, "node_modules/typescript/bin/tsc"), "--noEmit", "--ignoreConfig"];
      const options = ["--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2022"];
      const lib = ["--lib", "es2023,dom,dom.iterable,dom.asynciterable", "--types", "node"];
      const places = ["--typeRoots", join(root, "node_modules/@types")];
      const args = [...tsc, ...options, ...lib, ...places, file];
      assert.equal(await run(process.execPath, args), 0);
    });
  });
}

const MODELS = {
  chat: { model: "embedded", endpoint: { chatTemplate: CHAT_TEMPLATE } },
  texts: join(root, "tests/parity/embeddings/bert.gguf"),
  ranks: join(root, "tests/parity/rerankers/bert.gguf"),
};
const messages = [
  { role: "system", content: "You tell tales." },
  { role: "user", content: "Tell me of a fox." },
];

for (const name of ["ai", "ai-6"]) {
  describe(`chats, vectors and orders with the package ${name}`, { skip }, () => {
    let sdk;
    let engine;
    let provider;
    /** The bodies that the engine's chat was asked with. */
    const bodies = [];
    before(async () => {
      sdk = await import(pathToFileURL(clients.resolve(name)).href);
      engine = await createEngine({ models: MODELS, threads: 1 });
      const { completions } = engine.chat;
      const { create } = completions;
      completions.create = function (body, options) {
        bodies.push(body);
        return create.call(this, body, options);
      };
      provider = createInpage({ engine });
    });
    after(() => engine?.dispose());

    test("a conversation is continued, whole and streamed", async () => {
      const expected = await engine.chat.completions.create({
        ...{ model: "chat", messages, temperature: 0, max_tokens: 12 },
      });
      const options = { model: provider("chat"), messages, temperature: 0, maxOutputTokens: 12 };
      const whole = await sdk.generateText({ ...options, allowSystemInMessages: true });
      assert.equal(whole.text, expected.choices[0].message.content);
      assert.equal(whole.usage.inputTokens, expected.usage.prompt_tokens);
      assert.equal(whole.finishReason, expected.choices[0].finish_reason);
      const stream = sdk.streamText({ ...options, allowSystemInMessages: true });
      let streamed = "";
      for await (const part of stream.textStream) streamed += part;
      assert.equal(streamed, whole.text);
      assert.equal((await stream.usage).outputTokens, whole.usage.outputTokens);
    });

    test("a forced call has arguments of its schema, whole and streamed", async () => {
      const inputSchema = sdk.jsonSchema({
        type: "object",
        properties: { city: { enum: ["Rome", "Oslo"] } },
        required: ["city"],
      });
      const options = {
        ...{ model: provider("chat"), prompt: "How warm is it?", temperature: 0 },
        ...{ maxOutputTokens: 200, tools: { weather: sdk.tool({ inputSchema }) } },
        providerOptions: { inpage: { parallel_tool_calls: false } },
        toolChoice: { type: "tool", toolName: "weather" },
      };
      const { toolCalls, finishReason } = await sdk.generateText(options);
      assert.deepEqual([toolCalls.length, toolCalls[0].toolName], [1, "weather"]);
      assert.ok(["Rome", "Oslo"].includes(toolCalls[0].input.city));
      assert.equal(finishReason, "tool-calls");
      const streamed = sdk.streamText(options);
      assert.deepEqual((await streamed.toolCalls)[0].input, toolCalls[0].input);
    });

    test("a loop of tools ends with an answer", async () => {
      const asked = [];
      const weather = sdk.tool({
        inputSchema: sdk.jsonSchema({
          type: "object",
          properties: { city: { enum: ["Oslo"] } },
          required: ["city"],
        }),
        execute: async (input) => {
          asked.push(input);
          return { degrees: 21 };
        },
      });
      bodies.length = 0;
      const { steps } = await sdk.generateText({
        ...{ model: provider("chat"), prompt: "How warm is it?", temperature: 0 },
        providerOptions: { inpage: { parallel_tool_calls: false } },
        ...{ maxOutputTokens: 200, tools: { weather }, stopWhen: sdk.stepCountIs(2) },
        prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? "required" : "none" }),
      });
      assert.deepEqual(asked, [{ city: "Oslo" }]);
      assert.equal(steps.length, 2);
      assert.deepEqual(
        bodies.map(({ messages }) => messages.map(({ role }) => role)),
        [["user"], ["user", "assistant", "tool"]],
      );
    });

    test("vectors and orders are those of the endpoint", async () => {
      const values = ["A sentence.", "Another one."];
      const { embeddings } = await sdk.embedMany({
        ...{ model: provider.embeddingModel("texts"), values },
      });
      const expected = await engine.embeddings.create({ model: "texts", input: values });
      assert.deepEqual(
        embeddings,
        expected.data.map(({ embedding }) => embedding),
      );
      const documents = ["A cat sat on the hill.", "dogs & foxes"];
      const query = "the cat";
      const { ranking } = await sdk.rerank({
        ...{ model: provider.rerankingModel("ranks"), query, documents, topN: 1 },
      });
      const { results } = await engine.rerank({ model: "ranks", query, documents });
      assert.equal(ranking.length, 1);
      assert.equal(ranking[0].originalIndex, results[0].index);
      assert.equal(ranking[0].score, results[0].relevance_score);
    });

    test("a chat without a server tells the progress of the load once", async () => {
      const own = createInpage({ model: "embedded", endpoint: MODELS.chat.endpoint, threads: 1 });
      const agent = new sdk.ToolLoopAgent({ model: own(), maxOutputTokens: 8 });
      const transport = own.withLoadProgress(new sdk.DirectChatTransport({ agent }));
      assert.equal(await transport.reconnectToStream({ chatId: "1" }), null);
      const message = { id: "1", role: "user", parts: [{ type: "text", text: "Hi" }] };
      const request = { trigger: "submit-message", chatId: "1", messages: [message] };
      const read = async () => {
        const chunks = [];
        for await (const chunk of await transport.sendMessages(request)) chunks.push(chunk);
        return chunks;
      };
      const first = await read();
      const ofLoad = first.filter(({ type }) => type === "data-model-load");
      assert.ok(ofLoad.length > 0);
      for (const { data, transient } of ofLoad) {
        assert.ok(transient && data.loadedBytes >= 0, JSON.stringify(data));
      }
      assert.ok(first.some(({ type }) => type === "text-delta"));
      const second = await read();
      assert.ok(second.every(({ type }) => type !== "data-model-load"));
      const { getEngine } = await import("../../www/dist/node/index.js");
      const shared = await getEngine({
        ...{ model: "embedded", endpoint: MODELS.chat.endpoint, threads: 1 },
      });
      await shared.dispose();
    });
  });
}

/** A provider whose engine answers with `answer`, and the bodies that it was asked with. */
function faked(answer) {
  const bodies = [];
  const create = async (body) => {
    bodies.push(body);
    return answer(body);
  };
  const engine = { chat: { completions: { create } } };
  return { model: createInpage({ engine })("m"), bodies };
}

const head = { id: "chatcmpl-1", created: 7, model: "m", object: "chat.completion" };
const counts = {
  ...{ prompt_tokens: 5, completion_tokens: 9, total_tokens: 14 },
  prompt_tokens_details: { cached_tokens: 2 },
  completion_tokens_details: { reasoning_tokens: 4 },
};

test("messages, images, tools and results become those of the endpoint", async () => {
  const message = { role: "assistant", content: "ok", reasoning_content: "hm" };
  const { model, bodies } = faked(() => ({
    ...{ ...head, choices: [{ index: 0, message, finish_reason: "stop" }], usage: counts },
  }));
  const answer = await model.doGenerate({
    prompt: [
      { role: "system", content: "Be brief." },
      {
        role: "user",
        content: [
          { type: "text", text: "What is it?" },
          { type: "file", mediaType: "image/png", data: new Uint8Array([1, 2, 3]) },
          { type: "file", mediaType: "image/*", data: "AQID" },
          { type: "file", mediaType: "image/jpeg", data: new URL("https://a.example/b.jpg") },
        ],
      },
      {
        role: "assistant",
        content: [
          { type: "reasoning", text: "look" },
          { type: "text", text: "I see." },
          { type: "tool-call", toolCallId: "c1", toolName: "zoom", input: { by: 2 } },
        ],
      },
      {
        role: "tool",
        content: [
          {
            ...{ type: "tool-result", toolCallId: "c1", toolName: "zoom" },
            output: { type: "json", value: { size: 3 } },
          },
          {
            ...{ type: "tool-result", toolCallId: "c2", toolName: "zoom" },
            output: { type: "content", value: [{ type: "text", text: "a" }] },
          },
          {
            ...{ type: "tool-result", toolCallId: "c3", toolName: "zoom" },
            output: { type: "execution-denied" },
          },
        ],
      },
    ],
    ...{ topK: 3, toolChoice: { type: "required" } },
    tools: [
      { type: "function", name: "zoom", inputSchema: { type: "object" }, strict: true },
      { type: "provider", id: "a.search", name: "search", args: {} },
    ],
    responseFormat: { type: "json", schema: { type: "object" }, name: "n" },
    providerOptions: { inpage: { min_p: 0.1 } },
  });
  const image = "data:image/png;base64,AQID";
  assert.deepEqual(bodies, [
    {
      model: "m",
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "What is it?" },
            ...[image, image, "https://a.example/b.jpg"].map((url) => ({
              ...{ type: "image_url", image_url: { url } },
            })),
          ],
        },
        {
          ...{ role: "assistant", content: "I see.", reasoning_content: "look" },
          tool_calls: [
            { id: "c1", type: "function", function: { name: "zoom", arguments: '{"by":2}' } },
          ],
        },
        { role: "tool", tool_call_id: "c1", content: '{"size":3}' },
        { role: "tool", tool_call_id: "c2", content: "a" },
        {
          ...{ role: "tool", tool_call_id: "c3" },
          content: "The execution of this tool was denied.",
        },
      ],
      top_k: 3,
      response_format: {
        ...{ type: "json_schema", json_schema: { name: "n", schema: { type: "object" } } },
      },
      tools: [
        {
          type: "function",
          function: { name: "zoom", parameters: { type: "object" }, strict: true },
        },
      ],
      ...{ tool_choice: "required", min_p: 0.1, stream: false },
    },
  ]);
  assert.deepEqual(answer.content, [
    { type: "reasoning", text: "hm" },
    { type: "text", text: "ok" },
  ]);
  assert.deepEqual(
    answer.warnings.map(({ feature }) => feature),
    ["the provider's tool search"],
  );
  assert.deepEqual(answer.usage, {
    inputTokens: { total: 5, noCache: 3, cacheRead: 2, cacheWrite: undefined },
    outputTokens: { total: 9, text: 5, reasoning: 4 },
  });
  const sound = { type: "file", mediaType: "audio/wav", data: "AQID" };
  const refused = model.doGenerate({ prompt: [{ role: "user", content: [sound] }] });
  await assert.rejects(refused, /not a audio\/wav/);
});

test("a stream has a block for the reasoning, the text and each whole call", async () => {
  const deltas = [
    { role: "assistant" },
    { reasoning_content: "h" },
    { reasoning_content: "m" },
    { content: "a" },
    {
      tool_calls: [
        { index: 0, id: "c1", type: "function", function: { name: "f", arguments: "" } },
      ],
    },
    { tool_calls: [{ index: 0, function: { arguments: '{"x":' } }] },
    { tool_calls: [{ index: 0, function: { arguments: "1}" } }] },
    {
      tool_calls: [
        { index: 1, id: "c2", type: "function", function: { name: "g", arguments: '{"y' } },
      ],
    },
  ];
  const { model } = faked(() => {
    const chunks = deltas.map((delta) => ({ ...head, choices: [{ index: 0, delta }] }));
    chunks.push({ ...head, choices: [{ index: 0, delta: {}, finish_reason: "length" }] });
    chunks.push({ ...head, choices: [], usage: counts });
    return Object.assign(chunks.values(), { cancel: async () => {} });
  });
  const { stream } = await model.doStream({ prompt: [{ role: "user", content: "Hi" }] });
  const parts = [];
  for await (const part of stream) parts.push(part);
  const input = { type: "tool-input-delta" };
  assert.deepEqual(parts.slice(2, -1), [
    { type: "reasoning-start", id: "reasoning-0" },
    { type: "reasoning-delta", id: "reasoning-0", delta: "h" },
    { type: "reasoning-delta", id: "reasoning-0", delta: "m" },
    { type: "reasoning-end", id: "reasoning-0" },
    { type: "text-start", id: "text-1" },
    { type: "text-delta", id: "text-1", delta: "a" },
    { type: "text-end", id: "text-1" },
    { type: "tool-input-start", id: "c1", toolName: "f" },
    { ...input, id: "c1", delta: '{"x":' },
    { ...input, id: "c1", delta: "1}" },
    { type: "tool-input-end", id: "c1" },
    { type: "tool-call", toolCallId: "c1", toolName: "f", input: '{"x":1}' },
    { type: "tool-input-start", id: "c2", toolName: "g" },
    { ...input, id: "c2", delta: '{"y' },
    { type: "tool-input-end", id: "c2" },
  ]);
  const { finishReason, usage } = parts.at(-1);
  assert.deepEqual(finishReason, { unified: "length", raw: "length" });
  assert.equal(usage.outputTokens.reasoning, 4);
});

test("an error of a stream is a part", async () => {
  const { model } = faked(() => {
    const chunks = (async function* () {
      yield { ...head, choices: [{ index: 0, delta: { content: "a" } }] };
      throw new Error("lost");
    })();
    return Object.assign(chunks, { cancel: async () => {} });
  });
  const { stream } = await model.doStream({ prompt: [{ role: "user", content: "Hi" }] });
  const parts = [];
  for await (const part of stream) parts.push(part);
  assert.equal(parts.at(-1).error.message, "lost");
});

test("the provider without options gives models by id", () => {
  assert.deepEqual([inpage().modelId, inpage("chat").modelId], ["default", "chat"]);
  assert.equal(inpage.languageModel("a").provider, "inpage.chat");
  assert.equal(inpage.completionModel().provider, "inpage.completion");
  assert.equal(inpage.textEmbeddingModel("a").modelId, "a");
});
