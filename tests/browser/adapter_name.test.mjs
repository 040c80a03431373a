//! The name of the adapter that `engine.info()` reports. No browser is needed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../../scripts/process.mjs";

const { extendWebGpu } = await import(
  pathToFileURL(join(root, "www/dist/worker/webgpu_features.js")).href
);

/** The name that the engine gets for an adapter with this `info`. */
async function nameOf(info) {
  const queue = { onSubmittedWorkDone: async () => {} };
  const device = { features: new Set(), lost: new Promise(() => {}), queue };
  const methods = ["createShaderModule", "createComputePipeline", "createBuffer"];
  for (const method of [...methods, "createComputePipelineAsync"]) device[method] = () => {};
  const adapter = { info, features: new Set(), requestDevice: async () => device };
  const gpu = { requestAdapter: async () => adapter, wgslLanguageFeatures: new Set() };
  // Not every version of Node has a navigator.
  Object.defineProperty(globalThis, "navigator", { value: { gpu }, configurable: true });
  const extension = extendWebGpu(() => {});
  await (await gpu.requestAdapter()).requestDevice();
  return extension.device.adapter;
}

test("the adapter's name is what the browser reports of it", async () => {
  const empty = { description: "", vendor: "", architecture: "", device: "" };
  const named = { ...empty, description: "NVIDIA H200" };
  assert.equal(await nameOf(named), "NVIDIA H200");
  assert.equal(
    await nameOf({ ...empty, vendor: "apple", architecture: "metal-3" }),
    "apple metal-3",
  );
  assert.equal(await nameOf(empty), "WebGPU adapter (the browser hides its name)");
  const software = { ...empty, isFallbackAdapter: true };
  assert.equal(await nameOf(software), "software adapter (the browser hides its name)");
});
