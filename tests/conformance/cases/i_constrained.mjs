//! I. Constrained output and tools (specification 9).

import { equal, fail, matches, ok, valid } from "../check.mjs";
import { R } from "../context.mjs";
import { ALL } from "../doors.mjs";

const PERSON = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 10 },
    age: { type: "integer", minimum: 0, maximum: 150 },
  },
  required: ["name", "age"],
  additionalProperties: false,
};
const ARGUMENTS = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const TOOLS = [
  {
    type: "function",
    function: { name: "get_weather", description: "", parameters: ARGUMENTS, strict: true },
  },
  {
    type: "function",
    function: {
      name: "add",
      parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } },
    },
  },
];

const grammar = (type, value) => ({ grammar: { type, value } });

function parsed(text, what) {
  try {
    return JSON.parse(text);
  } catch (error) {
    fail(`${what}: ${error.message}: ${JSON.stringify(text)}`);
  }
}

/** The longest run of white space outside strings. */
function longestSpace(json) {
  const outside = json.replace(/"(?:[^"\\]|\\.)*"?/g, '""');
  return Math.max(0, ...(outside.match(/\s+/g) ?? []).map((run) => run.length));
}

/** The call object in a completion, with or without a family's wrapper around it. */
function callIn(text) {
  const call = parsed(text.slice(text.indexOf("{"), text.lastIndexOf("}") + 1), "the call");
  const given = call.arguments;
  return { name: call.name, arguments: typeof given === "string" ? JSON.parse(given) : given };
}

export default [
  {
    id: "101",
    title: "a regular expression that is one word",
    doors: ALL,
    async run(ctx) {
      const { text, finish_reason } = await ctx.choice(grammar("regex", "example"));
      equal([text, finish_reason], ["example", "stop"], "text and finish_reason");
    },
  },
  {
    id: "102",
    title: "a regular expression",
    doors: ALL,
    async run(ctx) {
      const members = { n: 4, temperature: 1.5, max_tokens: 60 };
      const body = R({ ...grammar("regex", "[0-9]{3}-[0-9]{4}"), ...members });
      const { choices } = await ctx.completion(body);
      equal(choices.length, 4, "choices");
      for (const { text, finish_reason } of choices) {
        matches(text, /^[0-9]{3}-[0-9]{4}$/, "text");
        equal(finish_reason, "stop", "finish_reason");
      }
    },
  },
  {
    id: "104",
    title: "a JSON schema",
    doors: ALL,
    async run(ctx) {
      for (const seed of [1, 2, 3, 4, 5]) {
        const members = { temperature: 1.2, max_tokens: 200, seed };
        const choice = await ctx.choice({ ...grammar("json_schema", PERSON), ...members });
        equal(choice.finish_reason, "stop", `seed ${seed}: finish_reason`);
        valid(parsed(choice.text, `seed ${seed}`), PERSON, `seed ${seed}`);
      }
    },
  },
  {
    id: "105",
    title: "response_format in its four forms",
    doors: ALL,
    async run(ctx) {
      for (const [response_format, schema] of [
        [{ type: "json_object" }, { type: "object" }],
        [{ type: "json_object", schema: PERSON }, PERSON],
        [{ type: "json_schema", json_schema: PERSON }, PERSON],
        [
          { type: "json_schema", json_schema: { name: "person", schema: PERSON, strict: true } },
          PERSON,
        ],
      ]) {
        const what = JSON.stringify(response_format).slice(0, 60);
        const members = { response_format, max_tokens: 200, seed: 105 };
        const { text, finish_reason } = await ctx.choice(members);
        if (finish_reason === "stop") valid(parsed(text, what), schema, what);
        else matches(text, /^\{/, `${what}: an object begins`);
        ok(longestSpace(text) <= 17, `${what}: at most 17 white-space characters`, text);
      }
    },
  },
  {
    id: "106",
    title: "Lark and llguidance grammars",
    doors: ALL,
    async run(ctx) {
      const lark = await ctx.text(grammar("lark", 'start: "yes" | "no"'));
      ok(["yes", "no"].includes(lark), "yes or no", lark);
      const grammars = [
        { lark_grammar: "start: @v" },
        { name: "v", json_schema: { enum: ["a", "b"] } },
      ];
      const quoted = await ctx.text(grammar("llguidance", { grammars }));
      ok(['"a"', '"b"'].includes(quoted), '"a" or "b"', quoted);
    },
  },
  {
    id: "107",
    title: "constraints that do not compile",
    doors: ALL,
    async run(ctx) {
      for (const refused of [
        { type: "gbnf", value: 'root ::= "a"' },
        { type: "regex", value: "(" },
        { type: "regex", value: "(?=a)a" },
        { type: "json_schema", value: "x" },
        { type: "lark", value: 'other: "a"' },
        { type: "regex" },
        { type: "json_schema", value: { type: "nonsense" } },
      ]) {
        await ctx.refused(R({ grammar: refused }), 400, null, "grammar");
      }
      for (const response_format of [{ type: "json_schema" }, { type: "xml" }]) {
        await ctx.refused(R({ response_format }), 400, null, "response_format");
      }
    },
  },
  {
    id: "110",
    title: "a named tool is called",
    doors: ALL,
    async run(ctx) {
      const tool_choice = { type: "function", function: { name: "get_weather" } };
      for (const seed of [1, 2, 3]) {
        const members = { tools: TOOLS, tool_choice, max_tokens: 200, seed };
        const { text, finish_reason, tool_calls } = await ctx.choice(members);
        const what = `seed ${seed}`;
        ok(text.includes("get_weather"), `${what}: the name`, text);
        if (finish_reason !== "stop") {
          equal(finish_reason, "length", `${what}: a call that was cut`);
          continue;
        }
        equal(tool_calls?.length, 1, `${what}: tool_calls`);
        const [{ type, function: called }] = tool_calls;
        equal([type, called.name], ["function", "get_weather"], `${what}: tool_calls[0]`);
        const given = JSON.parse(called.arguments);
        valid(given, ARGUMENTS, `${what}: arguments`);
        // Not all families write calls as JSON.
        if (!/"name"/.test(text)) continue;
        equal(callIn(text), { name: "get_weather", arguments: given }, `${what}: the text`);
      }
    },
  },
  {
    id: "111",
    title: "invalid tools, and no tools",
    doors: ALL,
    async run(ctx) {
      const named = (name) => ({ type: "function", function: { name } });
      const required = { tool_choice: "required" };
      await ctx.refused(R(required), 400, null, "tool_choice");
      const absent = { tools: TOOLS, tool_choice: named("nope") };
      await ctx.refused(R(absent), 400, null, "tool_choice");
      for (const tools of [
        [{ type: "web_search" }],
        [{ type: "function", function: { parameters: ARGUMENTS } }],
        [TOOLS[0], TOOLS[0]],
      ]) {
        await ctx.refused(R({ tools }), 400, null, "tools");
      }
      await ctx.completion(R({ tools: null, tool_choice: "none" }));
      const plain = await ctx.text({ temperature: 0 });
      const ignored = { tools: TOOLS, tool_choice: "none", temperature: 0 };
      equal(await ctx.text(ignored), plain, "text with tools that are not to be called");
    },
  },
  {
    id: "112",
    title: "images on a text-only model",
    doors: ALL,
    async run(ctx) {
      const images = ["data:image/png;base64,AAAA"];
      await ctx.refused(R({ images }), 400, "unsupported_parameter", "images");
      for (const none of [[], null]) await ctx.completion(R({ images: none }));
    },
  },
];
