//! Types, checked by the compiler and never run: options, events and the end of an engine.

import { createEngine, inspectModel } from "../../www/dist/index.js";

await using engine = await createEngine({
  endpoint: { profile: "vllm", maxQueue: 4, chatTemplate: "x" },
  model: "qwen3-0.6b",
  fallbackModels: ["smollm2-135m-instruct", { model: "embedded", device: "cpu" }],
  fitMemory: true,
  memoryBudgetBytes: 5e9,
  hub: { baseURL: "https://hub.example" },
});
engine.addEventListener("progress", ({ progress }) => progress.phase.trim());
engine.addEventListener("statechange", ({ state, model }) => [state === "ready", model?.trim()]);
engine.addEventListener("lost", ({ error }) => error.code?.trim(), { once: true });
engine.addEventListener("other", { handleEvent() {} });
engine.removeEventListener("lost", () => {});
(await inspectModel("embedded", { memoryBudgetBytes: 5, load: { contextTokens: 5 } })).refusal;

// @ts-expect-error: a switch of the endpoint
createEngine({ maxQueue: 4 });
// @ts-expect-error: an option of the engine
createEngine({ load: { memoryBudgetBytes: 5 } });
// @ts-expect-error: of one model, only the chat template
createEngine({ models: { a: { model: "x.gguf", endpoint: { apiKey: "k" } } } });
// @ts-expect-error: no part of the public API
engine.connect;
