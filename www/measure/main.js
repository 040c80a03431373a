//! The page: which runtimes are measured, one after the other, and what it shows of them.

/** @import { Result } from "./measure.js" */

import { catalog } from "../dist/catalog/index.js";
import { DECODED_TOKENS, PROMPT_TOKENS, measure } from "./measure.js";
import { measureTransformers, measureWllama } from "./peers.js";
import { plot } from "./plot.js";

const DEFAULT_MODEL = "smollm2-135m-instruct";
const HUB = "https://huggingface.co";

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
/** @param {string} id */
const input = (id) => /** @type {HTMLInputElement} */ (byId(id));
/** @param {string} text */
const say = (text) => {
  byId("state").textContent = text;
};
const round = (/** @type {number | undefined} */ value) =>
  value === undefined ? "–" : String(Number(value.toPrecision(3)));

/** @type {Result[]} */
let results = [];
let running = new AbortController();

input("model").value = new URLSearchParams(location.search).get("model") ?? DEFAULT_MODEL;
const chats = catalog.filter(({ tasks }) => tasks.includes("chat"));
byId("models").replaceChildren(
  ...chats.map(({ name, title, bytes }) => {
    const size = bytes < 1e9 ? `${Math.round(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
    return new Option(`${title}, ${size}`, name);
  }),
);

/** The URL of the file for runtimes that know neither the catalog nor hubs. @param {string} model */
function urlOf(model) {
  const place = catalog.find(({ name }) => name === model)?.files.model ?? model;
  const [, name, file, revision = "main"] =
    /^hf:([^/]+\/[^/]+)\/([^@]+)(?:@(.+))?$/.exec(place) ?? [];
  if (file !== undefined) return `${HUB}/${name}/resolve/${revision}/${file}`;
  return new URL(place === "embedded" ? "../models/tales.gguf" : place, location.href).href;
}

/** @param {Result} result */
function show(result) {
  results.push(result);
  const { runtime, loadMs, prefill, decode, share, error } = result;
  const row = document.createElement("tr");
  const head = document.createElement("th");
  head.scope = "row";
  head.textContent = runtime;
  row.append(head);
  const cells = error
    ? [error]
    : [
        round(loadMs && loadMs / 1000),
        round(prefill),
        round(decode),
        share === undefined ? "–" : `${round(share * 100)} %`,
      ];
  for (const text of cells) {
    const cell = document.createElement("td");
    cell.textContent = text;
    if (error) cell.colSpan = 4;
    row.append(cell);
  }
  byId("rows").append(row);
  byId("results").hidden = false;
  const drawn = plot(results);
  byId("plot").replaceChildren(...(drawn ? [drawn] : []));
  byId("plot").hidden = drawn === undefined;
  byId("json").textContent = JSON.stringify(report(), null, 2);
  byId("report").hidden = false;
}

function report() {
  return {
    ...{ model: input("model").value, promptTokens: PROMPT_TOKENS, decodedTokens: DECODED_TOKENS },
    ...{ browser: navigator.userAgent, processors: navigator.hardwareConcurrency },
    ...{ isolated: crossOriginIsolated, results },
  };
}

async function run() {
  const { signal } = running;
  const model = input("model").value.trim();
  /** @type {[string, string, () => Promise<Result>][]} */
  const all = [
    ["webgpu", "inpage, GPU", () => measure(model, "webgpu", signal, say)],
    ["cpu", "inpage, CPU", () => measure(model, "cpu", signal, say)],
    ["wllama", "wllama, CPU", () => measureWllama(urlOf(model), signal)],
    ["transformers", "transformers.js, GPU", () => measureTransformers(signal)],
  ];
  for (const [id, runtime, work] of all) {
    if (!input(id).checked || signal.aborted) continue;
    say(`${runtime}: loading`);
    try {
      const result = await work();
      if (!signal.aborted) show(result);
    } catch (error) {
      if (!signal.aborted)
        show({ runtime, error: error instanceof Error ? error.message : String(error) });
    }
  }
  say(signal.aborted ? "Stopped." : "Done.");
}

byId("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  results = [];
  byId("rows").replaceChildren();
  running = new AbortController();
  const [start, stop] = ["start", "stop"].map((id) => /** @type {HTMLButtonElement} */ (byId(id)));
  if (start && stop) {
    [start.disabled, stop.disabled] = [true, false];
    await run();
    [start.disabled, stop.disabled] = [false, true];
  }
});
byId("stop").addEventListener("click", () => running.abort());
byId("copy").addEventListener("click", async () => {
  const copied = navigator.clipboard?.writeText(byId("json").textContent ?? "");
  await copied?.then(
    () => say("Copied."),
    () => say("Copying is not allowed here: select the text."),
  );
});
