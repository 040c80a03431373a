//! Reads what a model's files on the hub say: their sizes, and their headers through the inspection of the wasm module.

import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { root } from "../process.mjs";
import { dist, inspector, numbersOf } from "./plan.mjs";

/** The share by which numbers of an architecture may differ from those of the file, which has a real vocabulary. */
const SHAPE_TOLERANCE = 0.03;

/**
 * `{ numbers, origin }` of a model of the catalog; `origin` says which revision was read.
 *
 * @throws Error if a file is missing, or if this version does not run the model
 */
export async function checkModel(model, env) {
  const { resolveModel } = await dist("options/model.js");
  const { openHeads } = await dist("model_source/head_files.js");
  const { hubOf } = await import(pathToFileURL(join(root, "www/bin/model_place.mjs")));
  const hub = hubOf(env);
  const signal = AbortSignal.timeout(120_000);
  const located = (place) => resolveModel(place, hub).location;
  const { model: place, projector, mirrors = [] } = model.files;
  const location = located(place);
  for (const mirror of mirrors) await sizeOf(located(mirror).urls[0], hub);
  const tower = projector && (await towerOf(located(projector), openHeads, signal));
  const numbers = await numbersOf(() => openHeads(location, signal), tower?.loadedBytes);
  const { architecture, ...rest } = numbers;
  const bytes = numbers.bytes + (tower?.fileBytes ?? 0);
  const first =
    location.ggufName === undefined ? `${location.urls[0]}config.json` : location.urls[0];
  const { revision, sizeBytes } = await sizeOf(first, hub);
  if (location.ggufName !== undefined && sizeBytes !== numbers.bytes) {
    throw new Error(`${first} has ${sizeBytes} bytes by HEAD and ${numbers.bytes} by a range`);
  }
  const origin = `${architecture}${revision ? `, revision ${revision}` : ""}`;
  return { numbers: { ...rest, bytes, verified: "headers" }, origin };
}

/** The size and, where the server says it, the revision of a file. */
async function sizeOf(url, hub) {
  const headers = hub.token ? { authorization: `Bearer ${hub.token}` } : {};
  const response = await fetch(url, { method: "HEAD", headers });
  if (!response.ok) throw new Error(`${url}: status ${response.status}`);
  const revision = response.headers.get("x-repo-commit") ?? undefined;
  return { revision, sizeBytes: Number(response.headers.get("content-length")) };
}

async function towerOf(location, openHeads, signal) {
  const inspect = await inspector();
  const files = await openHeads(location, signal);
  try {
    const { runs, refusal, projector, fileBytes } = await inspect(files, {});
    if (!runs) throw new Error(`projector: ${refusal.message}`);
    if (!projector) throw new Error("projector: the file is a model");
    return { loadedBytes: projector.loadedBytes, fileBytes };
  } finally {
    await files.close();
  }
}

/** The differences between an entry of the catalog and the model's files. */
export function differences(model, found) {
  const toleranceOf = (...exact) => (exact.includes(model.verified) ? 0 : SHAPE_TOLERANCE);
  const compare = (name, said, is, tolerance = toleranceOf("headers")) =>
    Math.abs(said - is) > tolerance * is ? `${name} ${said} should be ${is}` : [];
  return [
    compare("parameters", model.parameters, found.parameters),
    compare("bytes", model.bytes, found.bytes, toleranceOf("headers", "size")),
    model.contextTokens === found.contextTokens
      ? []
      : `contextTokens ${model.contextTokens} should be ${found.contextTokens}`,
    compare("largestBufferBytes", model.largestBufferBytes, found.largestBufferBytes),
    compare("memory.context4k", model.memory.context4k, found.memory.context4k),
    compare("memory.context16k", model.memory.context16k, found.memory.context16k),
  ].flat();
}
