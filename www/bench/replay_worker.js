//! Measures in a worker, where the engine lives too, what replaying a decode step costs the CPU.
//! Served by scripts/bench.mjs beside the package; no part of it.

import init, { measureReplay } from "/dist/wasm/inpage.js";
import { openModel } from "/dist/model_source/open.js";
import { extendDeviceRequests } from "/dist/worker/webgpu_features.js";

self.onmessage = async ({ data: { url, steps, rounds } }) => {
  try {
    extendDeviceRequests((message) => {
      throw new Error(`the GPU device was lost: ${message}`);
    });
    await init();
    const { href, pathname } = new URL(url, self.location);
    const ggufName = pathname.split("/").at(-1);
    const location = { kind: "url", url: href, cache: true, ggufName };
    const files = await openModel(location, () => {}, new AbortController().signal);
    self.postMessage({ report: await measureReplay(files, steps, rounds) });
  } catch (error) {
    self.postMessage({ error: error?.message ?? String(error) });
  }
};
