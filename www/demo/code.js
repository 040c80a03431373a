//! A program that requests the completion that was requested last, with the OpenAI SDK.

/** @import { Choice } from "./current_model.js" */

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

/**
 * @param {Choice} model
 * @param {Record<string, unknown> & { images?: Blob[] }} fields of the request
 */
export function codeOf(model, { images, ...fields }) {
  const body = { model: "default", ...fields };
  const lines = Object.entries(body).map(([name, value]) => `${name}: ${literal(value)},`);
  if (images) lines.push("images: await Promise.all(Array.from(images, dataUrl)),");
  const parts = [
    'import OpenAI from "openai";\nimport { createEngine } from "inpage";',
    `${engineOf(model)}\n${CLIENT}`,
    ...(images ? [`${pick("images", "images", images)}\n${DATA_URL}`] : []),
    `const stream = await openai.completions.create({
  ${[...lines, "stream: true,"].join("\n  ")}
});
for await (const { choices } of stream) console.log(choices[0]?.text);`,
  ];
  return parts.join("\n\n");
}

/** @param {Choice} model */
function engineOf({ option, projector }) {
  const model = option === "embedded" ? undefined : option;
  /** @type {File[]} */
  const files = [];
  const options = Object.entries({ model, projector }).flatMap(([name, value]) => {
    if (value === undefined) return [];
    if (!(value instanceof File)) return [`${name}: ${literal(Object(value).url ?? value)}`];
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
 * JSON and integers of any length. The SDK sends JSON, which has no form for integers beyond 2^53 that JavaScript could write.
 *
 * @param {unknown} value
 */
function literal(value) {
  if (typeof value !== "bigint") return JSON.stringify(value);
  const isExact = Number.isSafeInteger(Number(value));
  return isExact ? `${value}` : `${value} /* rounded: engine.completions.create takes ${value}n */`;
}
