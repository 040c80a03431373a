//! The chat model of `inpage/ai-sdk` in AI SDK 6 and 7, with the embedded model in this process: structured output, and aborts
//! of calls and of chats without a server.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { root } from "../../scripts/process.mjs";
import { createInpage } from "../../www/dist/node/ai_sdk.js";
import { createEngine, getEngine } from "../../www/dist/node/index.js";
import { CHAT_TEMPLATE } from "../clients/chat_template.mjs";
import { installPackages } from "../clients/packages.mjs";

const skip = !(await installPackages()) && "skipped: the AI SDK cannot be installed";
const clients = createRequire(join(root, "tests/clients/package.json"));

const OPTIONS = { model: "embedded", endpoint: { chatTemplate: CHAT_TEMPLATE }, threads: 1 };
const prompt = "Tell me of a fox.";
/** An answer that fills the context, which takes seconds. */
const long = { maxOutputTokens: 500, providerOptions: { inpage: { ignore_eos: true } } };

for (const name of ["ai", "ai-6"]) {
  describe(`the chat model with the package ${name}`, { skip }, () => {
    let sdk;
    let engine;
    let provider;
    /** How long a long answer takes as a whole. */
    let whole_ms;

    before(async () => {
      sdk = await import(pathToFileURL(clients.resolve(name)).href);
      engine = await createEngine(OPTIONS);
      provider = createInpage({ engine });
      const start = performance.now();
      const { usage } = await sdk.generateText({ model: provider(), prompt, ...long });
      whole_ms = performance.now() - start;
      assert.ok(usage.outputTokens > 400);
    });
    after(() => engine?.dispose());

    /** Fails unless the generation ends long before its answer would be whole. */
    async function endsSoon(of = engine) {
      const start = performance.now();
      while ((await of.info()).activeGenerations > 0) {
        assert.ok(performance.now() - start < whole_ms / 4, "the generation goes on");
        await new Promise((done) => setTimeout(done, 5));
      }
      assert.equal((await of.info()).activeGenerations, 0);
    }

    test("an object has the form of its schema, whole and streamed", async () => {
      const { z } = clients("zod");
      const schema = z.object({ city: z.enum(["Rome", "Oslo"]), warm: z.boolean() });
      const options = {
        ...{ model: provider(), prompt, temperature: 0, maxOutputTokens: 200 },
        output: sdk.Output.object({ schema }),
      };
      const { output, text } = await sdk.generateText(options);
      assert.ok(schema.safeParse(output).success);
      assert.deepEqual(JSON.parse(text), output);
      const stream = sdk.streamText(options);
      const partial = [];
      for await (const part of stream.partialOutputStream) partial.push(part);
      assert.deepEqual(partial.at(-1), output);
      assert.ok(partial.length > 1, "the object grows");
      assert.deepEqual(await stream.output, output);
    });

    test("an abort ends the generation, whole and streamed", async () => {
      const controller = new AbortController();
      const options = { model: provider(), prompt, ...long, abortSignal: controller.signal };
      const stream = sdk.streamText({ ...options, onError() {} });
      for await (const _ of stream.textStream) {
        if (controller.signal.aborted) continue;
        assert.equal((await engine.info()).activeGenerations, 1);
        controller.abort();
      }
      await endsSoon();

      const other = new AbortController();
      const asking = sdk.generateText({ ...options, abortSignal: other.signal });
      while ((await engine.info()).activeGenerations === 0)
        await new Promise((done) => setTimeout(done, 5));
      other.abort();
      await assert.rejects(asking, { name: "AbortError" });
      await endsSoon();
    });

    const request = (abortSignal) => ({
      ...{ trigger: "submit-message", chatId: "1", abortSignal },
      messages: [{ id: "1", role: "user", parts: [{ type: "text", text: prompt }] }],
    });
    const transportOf = (from) => {
      const agent = new sdk.ToolLoopAgent({ model: from(), ...long });
      return from.withLoadProgress(new sdk.DirectChatTransport({ agent }));
    };

    test("in a chat without a server, stop ends the generation and the stream", async () => {
      const controller = new AbortController();
      const types = [];
      for await (const { type } of await transportOf(provider).sendMessages(
        request(controller.signal),
      )) {
        types.push(type);
        if (type !== "text-delta" || controller.signal.aborted) continue;
        assert.equal((await engine.info()).activeGenerations, 1);
        controller.abort();
      }
      assert.equal(types.at(-1), "abort");
      await endsSoon();
    });

    test("in a chat without a server, a reader that stops ends the generation", async () => {
      for await (const { type } of await transportOf(provider).sendMessages(request())) {
        if (type !== "text-delta") continue;
        assert.equal((await engine.info()).activeGenerations, 1);
        break;
      }
      await endsSoon();
    });

    test("after a stop while the model loads, nothing is generated", async () => {
      // Other options than those of other tests, so that the model is not loaded yet.
      const options = { ...OPTIONS, endpoint: { ...OPTIONS.endpoint, maxQueue: 7 } };
      const controller = new AbortController();
      const types = [];
      const stream = await transportOf(createInpage(options)).sendMessages(
        request(controller.signal),
      );
      for await (const { type } of stream) {
        types.push(type);
        if (type === "data-model-load") controller.abort();
      }
      assert.equal(types.at(-1), "abort");
      assert.ok(!types.includes("text-delta"));
      const shared = await getEngine(options);
      assert.equal((await shared.info()).activeGenerations, 0);
      await shared.dispose();
    });
  });
}
