//! Types, checked by the compiler and never run: requests in Anthropic's form, their streams and wrong ones.

import { createEngine } from "../../www/dist/index.js";

export const engine = await createEngine();
const messages = [{ role: "user", content: "x" }] as const;
const base = { model: "default", max_tokens: 5, messages };
(await engine.messages.create(base)).content[0]?.type.trim();
for await (const event of engine.messages.create({ ...base, stream: true })) event.type.trim();
(await engine.messages.countTokens({ model: "default", messages })).input_tokens.toFixed();
engine.messages.create({ ...base, top_k: 5, some_other_field: 1 });
engine.messages.create({
  ...base,
  system: [{ type: "text", text: "x" }],
  tools: [{ name: "f", input_schema: { type: "object" } }],
  tool_choice: { type: "tool", name: "f", disable_parallel_tool_use: true },
  thinking: { type: "enabled", budget_tokens: 1024 },
  output_config: { format: { type: "json_schema", schema: {} }, effort: "low" },
  messages: [
    { role: "user", content: [{ type: "image", source: { type: "url", url: new Blob() } }] },
    { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: {} }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "x" }] },
  ],
});

// @ts-expect-error: the limit is required
engine.messages.create({ model: "default", messages });
// @ts-expect-error: a turn has a role
engine.messages.create({ ...base, messages: [{ content: "x" }] });
// @ts-expect-error: a whole answer is no stream
for await (const _ of engine.messages.create(base)) break;
