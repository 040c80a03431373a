//! Types, checked by the compiler and never run: requests as the OpenAI SDK declares them are accepted, streams can be awaited
//! and iterated, and wrong requests are errors.

import type OpenAI from "openai";
import { createEngine, getEngine } from "../../www/dist/index.js";
declare const c: OpenAI.CompletionCreateParams;
declare const cn: OpenAI.CompletionCreateParamsNonStreaming;
declare const cs: OpenAI.CompletionCreateParamsStreaming;
declare const h: OpenAI.ChatCompletionCreateParams;
declare const hn: OpenAI.ChatCompletionCreateParamsNonStreaming;
declare const hs: OpenAI.ChatCompletionCreateParamsStreaming;
declare const e: OpenAI.EmbeddingCreateParams;
declare const r: OpenAI.Responses.ResponseCreateParams;
declare const rn: OpenAI.Responses.ResponseCreateParamsNonStreaming;
declare const rs: OpenAI.Responses.ResponseCreateParamsStreaming;
declare const rc: OpenAI.Responses.ResponseCompactParams;
export const engine = await createEngine();
engine.completions.create(c);
engine.completions.create(cn);
engine.completions.create(cs);
engine.completions.create({ model: "default", prompt: null });
engine.chat.completions.create(h);
engine.chat.completions.create(hn);
engine.chat.completions.create(hs);
engine.embeddings.create(e);
engine.responses.create(r);
engine.responses.create(rn);
engine.responses.create(rs);
const { output: compacted } = await engine.responses.compact(rc);
engine.responses.create({ input: [...compacted, { role: "user", content: "x" }] });

const streamed = { model: "default", prompt: "x", stream: true } as const;
for await (const { choices } of engine.completions.create(streamed)) choices[0]?.text.trim();
for await (const { choices } of await engine.completions.create(streamed)) choices[0]?.text.trim();
for await (const { choices } of engine.chat.completions.create(hs)) choices[0]?.delta.content;
for await (const event of engine.responses.create({ input: "x", stream: true })) event.type.trim();
(await engine.completions.create(cn)).choices[0]?.text.trim();
(await engine.completions.create({ model: "default", prompt: [1, 2], some_other_field: 1 })).usage;
engine.completions.create({ model: "default", prompt: new Uint32Array(2) });
const texts = { model: "default", input: "x" };
(await engine.embeddings.create(texts)).data[0]?.embedding.at(0)?.toFixed();
const base64 = { ...texts, encoding_format: "base64" } as const;
(await engine.embeddings.create(base64)).data[0]?.embedding.charAt(0);
(await engine.responses.create(rn)).output_text.trim();

// @ts-expect-error: a whole answer is no stream
for await (const _ of engine.completions.create(cn)) break;
// @ts-expect-error: a number is no prompt
engine.completions.create({ model: "default", prompt: 5 });
// @ts-expect-error: a message has a role
engine.chat.completions.create({ model: "default", messages: [{ content: "x" }] });
// @ts-expect-error: an option that does not exist
await createEngine({ maxQueues: 4 });
await getEngine({ model: "hf:owner/name/x.gguf", signal: AbortSignal.timeout(5) });
