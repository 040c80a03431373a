//! Shared by the client tests: the native server with hooks and the embedded model, or one that makes embeddings or reranks.

import { join } from "node:path";
import { root } from "../../scripts/process.mjs";
import { buildServer, nativeDoor, startServer } from "../conformance/native.mjs";

export const PROMPT = "Once upon a time";

const TALES = "www/models/tales.gguf";
/** A small model with random weights that makes embeddings. */
export const EMBEDDER = "tests/parity/embeddings/bert-cls-Q8_0.gguf";

/** A small model with random weights that reranks. */
export const RERANKER = "tests/parity/rerankers/bert.gguf";

/** `{ origin, hooks(command), reset(), idle(), close() }`. */
export async function startEndpoint(file = TALES) {
  const model = join(root, file);
  // The device makes no difference to clients, and the CPU is available everywhere.
  const { origin, close } = await startServer(await buildServer(), { model, device: "cpu" });
  const { hooks } = nativeDoor(origin);
  return {
    origin,
    hooks,
    close,
    /** Resets what a test changed. */
    async reset() {
      await hooks({ failAfterTokens: null });
      await hooks({ delayPrefillMs: 0 });
      await hooks({ delayStepMs: 0 });
      await hooks({ switches: {} });
    },
    /** Waits until no generation is in flight. */
    async idle(limit_ms = 2000) {
      const end = performance.now() + limit_ms;
      while ((await hooks({ activeGenerations: true })) > 0) {
        if (performance.now() > end)
          throw new Error(`a generation is still in flight after ${limit_ms} ms`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
  };
}
