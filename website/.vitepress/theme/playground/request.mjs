//! The request that the playground's form describes, and code that sends it. No part of this knows the page.

/** The constraints of a completion: `body(text)` are the fields of the request. */
export const CONSTRAINTS = {
  none: { label: "None", example: "", body: () => ({}) },
  schema: {
    label: "JSON schema",
    example: JSON.stringify(
      {
        type: "object",
        properties: {
          name: { type: "string", maxLength: 12 },
          age: { type: "integer", minimum: 1, maximum: 99 },
          friends: { type: "array", items: { enum: ["fox", "owl", "bear"] }, maxItems: 2 },
        },
        required: ["name", "age", "friends"],
        additionalProperties: false,
      },
      null,
      2,
    ),
    body: (text) => ({
      response_format: {
        type: "json_schema",
        json_schema: { name: "answer", schema: parsed(text) },
      },
    }),
  },
  regex: {
    label: "Regular expression",
    example: 'The (fox|owl) said: "[a-z ]{8,24}[.!]"',
    body: (value) => ({ grammar: { type: "regex", value } }),
  },
  lark: {
    label: "Grammar (Lark)",
    example:
      'start: line{3}\nline: "- " /[A-Z][a-z]{2,8}/ " " VERB ".\\n"\nVERB: "runs" | "sleeps" | "sings"',
    body: (value) => ({ grammar: { type: "lark", value } }),
  },
};

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new SyntaxError(`The JSON schema is no JSON: ${error.message}`);
  }
}

/** The number of alternatives of a token that are shown: the endpoint's default limit. */
const ALTERNATIVES = 5;

/** The body of the request. Throws a `SyntaxError` if the schema is no JSON. */
export function requestOf({
  prompt,
  maxTokens,
  temperature,
  topP,
  seed,
  constraint,
  constraintText,
}) {
  const body = { model: "default", prompt, max_tokens: maxTokens, temperature, top_p: topP };
  if (seed !== "") body.seed = Number(seed);
  return { ...body, ...CONSTRAINTS[constraint].body(constraintText), logprobs: ALTERNATIVES };
}

/** JSON as a JavaScript literal: names without quotes where that is possible. */
function literal(value) {
  return JSON.stringify(value, null, 2).replace(/^( *)"([a-z_]\w*)":/gim, "$1$2:");
}

const indented = (text, by) => text.replaceAll("\n", `\n${by}`);

/** Quotes a text for a POSIX shell. */
const shellQuoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** Programs that send `body`, by name. `model` is what `createEngine` takes. */
export function codeOf(body, model = "embedded") {
  const start = `const engine = await createEngine({ model: ${JSON.stringify(model)} });`;
  const show = `console.log(completion.choices[0].text);
await engine.dispose();`;
  return {
    "engine.completions": `import { createEngine } from "inpage";

${start}
const completion = await engine.completions.create(${literal(body)});
${show}`,
    "OpenAI SDK": `import { createEngine } from "inpage";
import OpenAI from "openai";

${start}
const client = new OpenAI({
  baseURL: "https://inpage.invalid/v1", // never contacted: engine.fetch answers
  apiKey: "unused",
  dangerouslyAllowBrowser: true, // the key is none
  fetch: engine.fetch,
});
const completion = await client.completions.create(${literal(body)});
${show}`,
    curl: `# in another terminal: npx inpage serve --port 8080
curl http://127.0.0.1:8080/v1/completions \\
  -H 'content-type: application/json' \\
  -d ${shellQuoted(indented(JSON.stringify(body, null, 2), "  "))}`,
  };
}
