//! Asks for WebGPU features that wgpu does not know on the web, and listens for a lost device.
//! Must run before the engine requests its device.

import { compileAheadOn } from "./compile_ahead.js";

/**
 * Wraps `GPUAdapter.prototype.requestDevice`: adds `subgroups` wherever the adapter has them and
 * says so in the global `inpageSubgroups`, which the Rust side reads, as it reads in `inpagePackedDot` whether WGSL
 * has products of packed bytes, and the adapter's name in `inpageAdapter` (wgpu passes on only `description`, which
 * browsers leave empty), and calls `inpageCompileAhead` of `compile_ahead.ts`. `onLost` is called when a
 * device is lost for any reason but being destroyed.
 */
export function extendDeviceRequests(onLost: (message: string) => void): void {
  // No WebGPU here: the engine itself says so, in its own words.
  if (typeof GPUAdapter === "undefined") return;
  const requestDevice = GPUAdapter.prototype.requestDevice;
  GPUAdapter.prototype.requestDevice = async function (descriptor = {}) {
    const subgroups = this.features.has("subgroups");
    const requiredFeatures = new Set(descriptor.requiredFeatures ?? []);
    if (subgroups) requiredFeatures.add("subgroups");
    const device = await requestDevice.call(this, {
      ...descriptor,
      requiredFeatures: [...requiredFeatures],
    });
    const { description, vendor, architecture } = this.info;
    Object.assign(globalThis, {
      inpageCompileAhead: compileAheadOn(device),
      inpageSubgroups: device.features.has("subgroups"),
      inpagePackedDot: navigator.gpu.wgslLanguageFeatures?.has("packed_4x8_integer_dot_product"),
      inpageAdapter: description || [vendor, architecture].filter(Boolean).join(" "),
    });
    void device.lost.then(({ reason, message }) => {
      if (reason !== "destroyed") onLost(message || "no reason given");
    });
    return device;
  };
}
