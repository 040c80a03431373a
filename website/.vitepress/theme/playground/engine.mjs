//! The engine of the built package, which the site has beside its pages. One per page, replaced when another model is chosen.

import { withBase } from "vitepress";

const PACKAGE = "/inpage/www/dist/index.js";
/** Its scope is the package, so that it never answers for pages of the site. */
const SERVICE_WORKER = "/inpage/www/dist/sw.js";

/** Starts an engine. `model` is what `createEngine` takes as `model`. */
export async function startEngine(model, onProgress) {
  const { createEngine } = await import(/* @vite-ignore */ withBase(PACKAGE));
  return createEngine({
    model,
    onProgress,
    // The CPU computes on several threads only in an isolated frame.
    isolatedFrame: { serviceWorkerUrl: withBase(SERVICE_WORKER) },
  });
}

/** A line that names the model and its device. */
export async function describe(engine) {
  const { adapter, device, model, threads } = await engine.info();
  const place = device === "cpu" ? `on the CPU, threads: ${threads}` : `on the GPU: ${adapter}`;
  return `The model ${model} is ready, ${place}.`;
}
