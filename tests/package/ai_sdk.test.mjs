//! `inpage/ai-sdk` in AI SDK 6 and 7, with the embedded model in this process.

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
      model = createInpage({ engine })();
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
      const other = createInpage({ engine })("other");
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
        `import { generateText } from ${JSON.stringify(types.replace(/d\.ts$/, "js"))};
import { createInpage, inpage } from ${JSON.stringify(join(root, "www/dist/ai_sdk/index.js"))};
await generateText({ model: inpage("default"), prompt: "Once" });
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

test("the provider without options gives models by id", () => {
  assert.deepEqual([inpage().modelId, inpage("chat").modelId], ["default", "chat"]);
  assert.equal(inpage.languageModel("a").provider, "inpage.completion");
});
