//! H. Streaming (specification 10).

import { allNear, equal, matches, ok } from "../check.mjs";
import { EventParser } from "../events.mjs";
import { FORCE, R } from "../context.mjs";
import { ALL } from "../doors.mjs";

const CONSTANT = ["id", "created", "model", "system_fingerprint", "object"];

/** The name and members of what a call of the SDK throws. */
async function thrown(call) {
  try {
    await call();
  } catch (error) {
    return { name: error.constructor.name, code: error.code, param: error.param };
  }
  return {};
}

export default [
  {
    id: "091",
    title: "the bytes of a stream",
    doors: ALL,
    async run(ctx) {
      const { response, text } = await ctx.stream(R());
      matches(response.headers.get("content-type"), /^text\/event-stream\b/, "content type");
      ok(text.endsWith("\n\n"), "ends with an empty line", text.slice(-40));
      const events = text.slice(0, -2).split("\n\n");
      for (const event of events) matches(event, /^data: [^\n\r]+$/, "event");
      const payloads = events.map((event) => event.slice("data: ".length));
      equal(payloads.pop(), "[DONE]", "last event");
      ok(payloads.length > 0, "events before [DONE]");
      for (const payload of payloads) JSON.parse(payload);
    },
  },
  {
    id: "092",
    title: "the chunks add up to the plain answer",
    doors: ALL,
    async run(ctx) {
      const members = { seed: 4, temperature: 1, max_tokens: 20 };
      const plain = await ctx.choice(members);
      const { chunks } = await ctx.stream(R(members));
      let joined = "";
      chunks.forEach((chunk, i) => {
        equal(chunk.choices.length, 1, `choices of chunk ${i}`);
        for (const name of CONSTANT) equal(chunk[name], chunks[0][name], `${name} of chunk ${i}`);
        const { text, logprobs, finish_reason } = chunk.choices[0];
        const expected = i === chunks.length - 1 ? plain.finish_reason : null;
        equal(finish_reason, expected, `finish_reason of chunk ${i}`);
        ok(text !== "" || logprobs || finish_reason, `chunk ${i} says something`, chunk);
        joined += text;
      });
      equal(joined, plain.text, "joined text");
    },
  },
  {
    id: "093",
    title: "two prompts, three choices each, streamed",
    doors: ALL,
    async run(ctx) {
      const prompt = ["alpha one", "Once upon a time"];
      const body = R({ prompt, n: 3, seed: 93, temperature: 1 });
      const plain = await ctx.completion(body);
      const finished = new Set();
      const { choices } = await ctx.stream(body, {
        onChunk(chunk) {
          for (const { index, finish_reason } of chunk.choices) {
            ok(!finished.has(index), `nothing for index ${index} after its finish`);
            if (finish_reason !== null) finished.add(index);
          }
        },
      });
      equal([...finished].sort(), [0, 1, 2, 3, 4, 5], "finished indices");
      equal(
        choices.map(({ text }) => text),
        plain.choices.map(({ text }) => text),
        "joined texts",
      );
    },
  },
  {
    id: "094",
    title: "usage in a stream",
    doors: ALL,
    async run(ctx) {
      const members = { seed: 94, temperature: 1 };
      const { usage } = await ctx.completion(R(members));
      const stream_options = { include_usage: true };
      const { chunks } = await ctx.stream(R({ ...members, stream_options }));
      const last = chunks.pop();
      equal(last.choices, [], "choices of the last event before [DONE]");
      equal(last.usage, usage, "usage");
      for (const chunk of chunks) equal(chunk.usage, null, "usage of the earlier chunks");
    },
  },
  {
    id: "096",
    title: "log-probabilities in a stream",
    doors: ALL,
    async run(ctx) {
      for (const [name, members] of [
        ["withheld text", { ...FORCE("ab\nc d"), stop: "\n\n" }],
        ["echo", { echo: true, n: 2, seed: 96 }],
        ["a stop", { ...FORCE("The quick brown fox jumps"), stop: "own f" }],
      ]) {
        const body = R({ ...members, logprobs: 2 });
        const plain = (await ctx.completion(body)).choices;
        const { choices } = await ctx.stream(body);
        equal(choices.length, plain.length, `${name}: choices`);
        choices.forEach(({ text, logprobs }, i) => {
          const expected = plain[i].logprobs;
          equal(text, plain[i].text, `${name}: text ${i}`);
          equal(logprobs.tokens, expected.tokens, `${name}: tokens ${i}`);
          equal(logprobs.text_offset, expected.text_offset, `${name}: text_offset ${i}`);
          const scores = [logprobs.token_logprobs, expected.token_logprobs];
          allNear(...scores, 1e-3, `${name}: token_logprobs ${i}`);
          logprobs.top_logprobs.forEach((top, j) => {
            const [seen, wanted] = [top ?? {}, expected.top_logprobs[j] ?? {}];
            equal(Object.keys(seen), Object.keys(wanted), `${name}: top_logprobs[${j}]`);
            const values = [Object.values(seen), Object.values(wanted)];
            allNear(...values, 1e-3, `${name}: top_logprobs[${j}]`);
          });
        });
      }
    },
  },
  {
    id: "097",
    title: "openai-node, plain, streamed and refused",
    doors: ALL,
    async run(ctx) {
      const { completions } = ctx.client();
      const body = R({ temperature: 0 });
      const plain = (await completions.create(body)).choices[0].text;
      ok(typeof plain === "string", "text is a string", plain);
      let joined = "";
      for await (const chunk of await completions.create({ ...body, stream: true })) {
        joined += chunk.choices[0].text;
      }
      equal(joined, plain, "joined text");
      for (const stream of [false, true]) {
        const refused = (members) => thrown(() => completions.create(R({ stream, ...members })));
        const out_of_range = { name: "BadRequestError", code: "out_of_range", param: "top_p" };
        equal(await refused({ top_p: 2 }), out_of_range, `top_p 2, stream ${stream}`);
        const not_found = { name: "NotFoundError", code: "model_not_found", param: "model" };
        equal(await refused({ model: "absent" }), not_found, `model absent, stream ${stream}`);
      }
    },
  },
  {
    id: "098",
    title: "openai-node: leaving the loop stops the generation",
    doors: ALL,
    async run(ctx) {
      // Slow enough to be observed while it runs.
      await ctx.hooks({ delayStepMs: 50 });
      const body = R({ max_tokens: 2000, ignore_eos: true, temperature: 1, stream: true });
      for await (const chunk of await ctx.client().completions.create(body)) {
        equal(chunk.choices.length, 1, "choices of the first chunk");
        const active = await ctx.hooks({ activeGenerations: true });
        ok(active > 0, "it is running when the loop is left", active);
        break;
      }
      await ctx.idle();
      await ctx.hooks({ delayStepMs: 0 });
      await ctx.completion(R());
    },
  },
  {
    id: "100",
    title: "a slow prefill: the head at once, then comments",
    doors: ALL,
    async run(ctx) {
      const body = R({ temperature: 0 });
      const expected = (await ctx.completion(body)).choices[0].text;
      await ctx.switches({ keepAliveMs: 1000 });
      await ctx.hooks({ delayPrefillMs: 3500 });
      const parser = new EventParser();
      let head_ms;
      let copied;
      // The SDK reads one copy of the bytes, the test case the other.
      const client = ctx.client({
        fetch: async (url, init) => {
          const start = performance.now();
          const response = await ctx.fetch(url, init);
          head_ms = performance.now() - start;
          const [mine, theirs] = response.body.tee();
          copied = (async () => {
            for (const reader = mine.getReader(); ; ) {
              const { done, value } = await reader.read();
              if (done) return;
              parser.push(value);
            }
          })();
          return new Response(theirs, { status: response.status, headers: response.headers });
        },
      });
      let joined = "";
      for await (const chunk of await client.completions.create({ ...body, stream: true })) {
        joined += chunk.choices[0].text;
      }
      await copied;
      ok(head_ms <= 1000, "the head within 1000 ms", head_ms);
      const { leadingComments, comments } = parser;
      ok(leadingComments >= 2, "two comments before the first chunk", comments);
      equal(joined, expected, "what the SDK read");
    },
  },
];
