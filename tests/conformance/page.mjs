//! Runs cases inside a page, through `engine.fetch` or the service worker. Needs the package built with hooks at /dist/,
//! a model at /model.gguf, and a function `report(result)` in the page.

import * as inpage from "/dist/index.js";
import OpenAI from "/openai.js";
import { cases } from "./cases/index.mjs";
import { runCases } from "./run.mjs";

async function openDoor(name, device, sees) {
  const model = { url: "/model.gguf", id: "inpage/model" };
  const engine = await inpage.createEngine({
    model,
    device,
    ...(sees && { projector: "/projector.gguf" }),
  });
  const door = {
    name,
    origin: location.origin,
    fetch: engine.fetch,
    plainFetch: name === "sw" ? (url, init) => fetch(url, init) : engine.fetch,
    OpenAI,
    async hooks(command) {
      const init = { method: "POST", body: JSON.stringify(command) };
      const response = await engine.fetch("https://inpage.invalid/v1/_hooks", init);
      if (!response.ok) throw new Error(`hook ${init.body}: ${await response.text()}`);
      return response.json();
    },
    complete: (body, options) => engine.completions.create(body, options),
    chat: (body, options) => engine.chat.completions.create(body, options),
    embed: (body, options) => engine.embeddings.create(body, options),
    rerank: (body, options) => engine.rerank(body, options),
  };
  if (name === "sw") {
    await inpage.serveFromPage(engine).ready;
    door.fetch = inpage.servedFetch;
  }
  return door;
}

/** Runs the cases with these ids through a door, on a device; calls `report` with each result. */
window.runConformance = async ({ door: name, device, ids, sees }) => {
  const door = await openDoor(name, device, sees);
  const chosen = cases.filter(({ id }) => ids.includes(id));
  for await (const result of runCases(chosen, door)) await window.report(result);
};
window.loaded = true;
