//! Shared by the client tests: the native server with hooks and the embedded model.

import { join } from "node:path";
import { root } from "../../scripts/process.mjs";
import { buildServer, nativeDoor, startServer } from "../conformance/native.mjs";

export const PROMPT = "Once upon a time";

/** `{ origin, hooks(command), reset(), idle(), close() }`. */
export async function startEndpoint() {
  const model = join(root, "www/models/tales.gguf");
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
