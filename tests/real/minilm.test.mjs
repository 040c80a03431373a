//! The vectors of all-MiniLM-L6-v2 on the CPU device, beside exact ones.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { provideRealModels, references } from "./models.mjs";

const models = await provideRealModels();
const { sentences, vectors } = references().miniLm;

function cosine(a, b) {
  const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

describe("MiniLM", { skip: models.reason && `skipped: ${models.reason}` }, () => {
  for (const [name, load, least, leastOfWord] of [
    ["unquantized", { quantize: "none" }, 0.9999, 0.9999],
    // The mean of few tokens evens out less of what rounding to bytes does to each.
    ["with the defaults", {}, 0.999, 0.998],
  ]) {
    test(`vectors ${name} have a cosine of at least ${least} with the exact ones, of one word ${leastOfWord}`, async () => {
      const { createEngine } = await import("../../www/dist/node/index.js");
      const engine = await createEngine({ model: models.miniLm, load });
      try {
        const { data } = await engine.embeddings.create({ model: "default", input: sentences });
        for (const [i, { embedding }] of data.entries()) {
          const isWord = /^\w+$/.test(sentences[i]);
          const found = cosine(embedding, vectors[i]);
          const needed = isWord ? leastOfWord : least;
          assert.ok(found >= needed, `${found} for ${JSON.stringify(sentences[i])}`);
        }
      } finally {
        await engine.dispose();
      }
    });
  }
});
