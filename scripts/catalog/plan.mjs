//! Computes the numbers of a model with the loader's own plan: the inspection of the wasm module, from the header of a file.

import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../process.mjs";
import { headerOf } from "./header.mjs";

const CONTEXTS = { context4k: 4096, context16k: 16384 };

/** A module of the built package. */
export const dist = (file) => import(pathToFileURL(join(root, "www/dist", file)));

let started;
/** The wasm module's `inspectModel`. */
export function inspector() {
  started ??= (async () => {
    const { default: init, inspectModel } = await dist("wasm/inpage.js");
    await init({ module_or_path: readFileSync(join(root, "www/dist/wasm/inpage_bg.wasm")) });
    return inspectModel;
  })();
  return started;
}

/**
 * The numbers of a model whose files `open` opens.
 *
 * @throws Error with the refusal if this version does not run it
 */
export async function numbersOf(open, projectorBytes = 0) {
  const inspect = await inspector();
  const memory = {};
  let report;
  let largestBufferBytes;
  for (const [name, tokens] of Object.entries(CONTEXTS)) {
    const files = await open();
    try {
      const load = { contextTokens: tokens };
      report = await inspect(files, { load, sequences: 1 });
    } finally {
      await files.close?.();
    }
    if (!report.runs) throw new Error(`this version does not run it: ${report.refusal.message}`);
    memory[name] = report.model.memory.totalBytes + projectorBytes;
    largestBufferBytes ??= report.model.memory.largestBuffer.bytes;
  }
  const { parameters, hyperparameters, architecture } = report.model;
  const { contextTokens } = hyperparameters;
  return {
    architecture,
    parameters,
    bytes: report.fileBytes,
    contextTokens,
    memory,
    largestBufferBytes,
  };
}

/** The numbers of a model that is known by the numbers of its architecture, and by the size of its file if that is published. */
export async function numbersOfShape(shape, publishedBytes) {
  const { openLocal } = await import(pathToFileURL(join(root, "www/bin/local_files.mjs")));
  const { header, sparseBytes, fileBytes } = headerOf(shape);
  const folder = mkdtempSync(join(tmpdir(), "inpage-catalog-"));
  try {
    const path = join(folder, "model.gguf");
    writeFileSync(path, header);
    truncateSync(path, sparseBytes);
    const { projectorBytes = 0 } = shape;
    const { architecture, ...numbers } = await numbersOf(() => openLocal(path), projectorBytes);
    const bytes = (publishedBytes ?? fileBytes) + projectorBytes;
    return { ...numbers, bytes, verified: publishedBytes === undefined ? "shape" : "size" };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
