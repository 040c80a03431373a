//! Embeddings through client libraries against the native server: the official JavaScript client, the AI SDK and
//! LangChain. The libraries besides the first are installed here on demand; without npm's registry their tests are skipped.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { testAiSdkEmbeddings } from "./ai_sdk.mjs";
import { EMBEDDER, startEndpoint } from "./endpoint.mjs";
import { installPackages, OPENAI_VERSIONS } from "./packages.mjs";

// Before any suite: the tests of the file end when all suites that are known by then have ended.
const isInstalled = await installPackages();
const missing = { skip: !isInstalled && "skipped: the packages cannot be installed" };

let endpoint;

before(async () => {
  endpoint = await startEndpoint(EMBEDDER);
});
after(() => endpoint?.close());

for (const [name, specifier] of OPENAI_VERSIONS) {
  const isMissing = specifier !== "openai" && !isInstalled;
  const skip = isMissing && "skipped: the packages cannot be installed";
  describe(`${name} for JavaScript, embeddings`, { skip }, () => {
    let OpenAI;
    let openai;
    before(async () => {
      openai = await import(specifier);
      OpenAI = openai.default;
    });
    const client = () =>
      new OpenAI({ baseURL: `${endpoint.origin}/v1`, apiKey: "x", maxRetries: 0 });
    const body = { model: "default", input: ["a fox", "a dog"] };

    test("reads floats and base64, which it asks for by default", async () => {
      const { embeddings } = client();
      const implicit = await embeddings.create(body);
      const explicit = await embeddings.create({ ...body, encoding_format: "float" });
      assert.equal(implicit.data.length, 2);
      for (const [index, { embedding }] of explicit.data.entries()) {
        assert.ok(embedding.every(Number.isFinite));
        const read = Array.from(implicit.data[index].embedding);
        assert.deepEqual(read, Array.from(new Float32Array(embedding)));
      }
      assert.deepEqual(implicit.usage, explicit.usage);
    });

    test("shortens vectors", async () => {
      const { data } = await client().embeddings.create({ ...body, dimensions: 8 });
      assert.equal(data[0].embedding.length, 8);
    });

    test("maps errors to its classes", async () => {
      const failure = await client()
        .embeddings.create({ ...body, input: "" })
        .catch((error) => error);
      assert.ok(failure instanceof openai.BadRequestError, `${failure}`);
      assert.deepEqual([failure.code, failure.param], ["invalid_value", "input"]);
    });
  });
}

for (const [version, core, compatible, official] of [
  ["7", "ai", "@ai-sdk/openai-compatible", "@ai-sdk/openai"],
  ["6", "ai-6", "ai-6-openai-compatible", "ai-6-openai"],
]) {
  describe(`AI SDK ${version}, embeddings of openai-compatible`, missing, () => {
    testAiSdkEmbeddings(async () => {
      const { createOpenAICompatible } = await import(compatible);
      const provider = createOpenAICompatible({
        name: "inpage",
        baseURL: `${endpoint.origin}/v1`,
      });
      return { sdk: await import(core), embedder: provider.embeddingModel("default") };
    });
  });

  describe(`AI SDK ${version}, embeddings of openai`, missing, () => {
    testAiSdkEmbeddings(async () => {
      const { createOpenAI } = await import(official);
      const provider = createOpenAI({ baseURL: `${endpoint.origin}/v1`, apiKey: "x" });
      return { sdk: await import(core), embedder: provider.embeddingModel("default") };
    });
  });
}

describe("LangChain, embeddings", missing, () => {
  test("OpenAIEmbeddings embeds a query and documents", async () => {
    const { OpenAIEmbeddings } = await import("@langchain/openai");
    const embeddings = new OpenAIEmbeddings({
      model: "default",
      apiKey: "x",
      maxRetries: 0,
      configuration: { baseURL: `${endpoint.origin}/v1` },
    });
    const documents = await embeddings.embedDocuments(["a fox", "a dog"]);
    assert.equal(documents.length, 2);
    assert.deepEqual(await embeddings.embedQuery("a dog"), documents[1]);
  });
});
