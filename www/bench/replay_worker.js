//! Measures the CPU time of replaying a decode step, in a worker, as the engine does. scripts/bench.mjs serves it; it is
//! not part of the package.

import init, { measureReplay } from "/dist-bench/wasm/inpage.js";
import { resolveModel } from "/dist/options/model.js";
import { openModel } from "/dist/model_source/open.js";
import { extendWebGpu } from "/dist/worker/webgpu_features.js";

self.onmessage = async ({ data: { url, steps, rounds } }) => {
  try {
    const webgpu = extendWebGpu((message) => {
      throw new Error(`the GPU device was lost: ${message}`);
    });
    await init();
    const { location } = resolveModel(new URL(url, self.location));
    const files = await openModel(location, { signal: new AbortController().signal });
    self.postMessage({ report: await measureReplay(files, webgpu, steps, rounds) });
  } catch (error) {
    self.postMessage({ error: error?.message ?? String(error) });
  }
};
