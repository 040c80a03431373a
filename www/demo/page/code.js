//! A program that requests with the OpenAI SDK what the page requested last: a chat, a completion or embeddings.

/** @import { Choice } from "../models/choice.js" */

const CLIENT = `const openai = new OpenAI({
  baseURL: \`\${location.origin}/v1\`,
  apiKey: "none",
  fetch: engine.fetch,
  dangerouslyAllowBrowser: true,
});`;

/** Requests are JSON, so an image is the URL of its data. */
const DATA_URL = `const dataUrl = (file) =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });`;

/** The number of messages of a long conversation that are in the program. */
const MAX_MESSAGES = 4;

/**
 * The call of the SDK and what is done with its answer.
 *
 * @type {Record<Kind, [begin: string, end: string]>}
 *
 * @typedef {"chat" | "completion" | "embeddings"} Kind
 */
const CALLS = {
  chat: [
    "const stream = await openai.chat.completions.create({",
    'for await (const { choices } of stream) console.log(choices[0]?.delta.content ?? "");',
  ],
  completion: [
    "const stream = await openai.completions.create({",
    "for await (const { choices } of stream) console.log(choices[0]?.text);",
  ],
  embeddings: [
    "const { data } = await openai.embeddings.create({",
    "console.log(data.map(({ embedding }) => embedding));",
  ],
};

/**
 * @param {Kind} kind
 * @param {Choice} model
 * @param {Record<string, unknown>} fields of the request; images are blobs
 */
export function codeOf(kind, model, fields) {
  /** @type {Blob[]} */
  const images = [];
  const lines = Object.entries({ model: "default", ...fields }).map(
    ([name, value]) =>
      `${name}: ${name === "messages" ? messagesOf(value, images) : literal(value, images)},`,
  );
  if (kind !== "embeddings") lines.push("stream: true,");
  const [begin, end] = CALLS[kind];
  const parts = [
    'import OpenAI from "openai";\nimport { createEngine } from "inpage";',
    `${engineOf(model)}\n${CLIENT}`,
    ...(images.length > 0 ? [`${pick("images", "images", images)}\n${DATA_URL}`] : []),
    `${begin}\n  ${lines.join("\n  ")}\n});\n${end}`,
  ];
  return parts.join("\n\n");
}

/**
 * One message a line.
 *
 * @param {unknown} messages
 * @param {Blob[]} images
 */
function messagesOf(messages, images) {
  const all = Array.isArray(messages) ? messages : [];
  const shown = all.slice(-MAX_MESSAGES);
  const left = all.length - shown.length;
  const lines = shown.map((message) => `    ${literal(message, images)},`);
  if (left > 0) lines.unshift(`    // and ${left} before these`);
  return `[\n${lines.join("\n")}\n  ]`;
}

/** @param {Choice} model */
function engineOf({ option, projector, catalogName }) {
  if (catalogName) return `const engine = await createEngine({ model: "${catalogName}" });`;
  const model = option === "embedded" ? undefined : option;
  /** @type {File[]} */
  const files = [];
  const options = Object.entries({ model, projector }).flatMap(([name, value]) => {
    if (value === undefined) return [];
    if (!(value instanceof File)) return [`${name}: ${literal(Object(value).url ?? value, [])}`];
    files.push(value);
    return [name];
  });
  const names = options.filter((option) => !option.includes(":"));
  const engine = `await createEngine(${options.length > 0 ? `{ ${options.join(", ")} }` : ""})`;
  const picked = files.length > 0 ? `${pick(`[${names.join(", ")}]`, "models", files)}\n` : "";
  return `${picked}const engine = ${engine};`;
}

/**
 * Code that takes files from an input of the page.
 *
 * @param {string} names of the variables
 * @param {string} id of the input
 * @param {Blob[]} files
 */
function pick(names, id, files) {
  const shown = files.map((file) => (file instanceof File ? file.name : "a file")).join(", ");
  // A comment ends with its line.
  const comment = shown.replaceAll(/[\r\n\u2028\u2029]/g, " ");
  return `const ${names} = document.querySelector("#${id}").files; // ${comment}`;
}

/**
 * A value as a program has it: JSON, integers of any length, and images, which are added to `images`.
 *
 * @param {unknown} value
 * @param {Blob[]} images
 * @returns {string}
 */
function literal(value, images) {
  if (typeof value === "bigint") {
    // The SDK sends JSON, which has no form for integers beyond 2^53 that JavaScript could write.
    const isExact = Number.isSafeInteger(Number(value));
    return isExact
      ? `${value}`
      : `${value} /* rounded: engine.completions.create takes ${value}n */`;
  }
  if (value instanceof Blob) return `await dataUrl(images[${images.push(value) - 1}])`;
  if (Array.isArray(value)) return `[${value.map((it) => literal(it, images)).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, it]) => `${name}: ${literal(it, images)}`);
  return `{ ${members.join(", ")} }`;
}
