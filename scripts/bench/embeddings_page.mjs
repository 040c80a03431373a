//! The function that `npm run bench -- --embeddings` runs inside the page. It is sent there as text, so it is self-contained, and
//! returns raw times in ms.

/** Texts of one request. */
export const TEXTS = 32;

/**
 * Runs in the page. Resolves with raw times in ms and the vector of the first text, or with `{ error }`. `place` is the `model` option,
 * `textsUrl` the module with the texts that other runtimes get, too.
 */
export async function measureEmbeddingsInPage({ place, textsUrl, device, threads, count, rounds }) {
  let engine;
  try {
    const { createEngine } = await import("/dist/index.js");
    const { benchTexts } = await import(textsUrl);
    const start = performance.now();
    engine = await createEngine({ device, threads, model: place, shared: false });
    const load_ms = performance.now() - start;
    let vector;
    let tokens = 0;
    const once = async (texts) => {
      const start = performance.now();
      const { data, usage } = await engine.embeddings.create({ model: "default", input: texts });
      const ms = performance.now() - start;
      vector ??= data[0].embedding;
      tokens = Math.max(tokens, usage.prompt_tokens);
      return ms;
    };
    const samples = [];
    for (let round = 0; round <= rounds; round++) {
      const texts_ms = await once(benchTexts(count, round));
      samples.push({ texts_ms, text_ms: await once(benchTexts(1, round)) });
    }
    // The first round compiles.
    return { load_ms, samples: samples.slice(1), tokens, vector, info: await engine.info() };
  } catch (error) {
    return { error: error?.message ?? String(error) };
  } finally {
    await engine?.dispose();
  }
}
