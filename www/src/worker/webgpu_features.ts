//! Adds to WebGPU what wgpu does not do on the web: requests `subgroups`, describes the device,
//! compiles pipelines ahead, and reports a lost device and unfinished operations.

import type { ExtendedDevice, GivenWebGpu } from "../wasm/hosted_engine.js";
import { compileAheadOn } from "./compile_ahead.js";
import { GpuOperations } from "./gpu_operations.js";
import { type OnOutOfMemory, watchMemoryOf } from "./gpu_memory.js";

/** The result of `extendWebGpu`, for the engine and for the worker. */
export interface WebGpuExtension extends GivenWebGpu {
  /** The operations that the devices have not finished. */
  readonly operations: GpuOperations;
  /** Destroys all devices: the engine is dead. */
  destroy(): void;
}

/**
 * Extends the devices that this worker requests from now on; must run before the engine requests its
 * own. Overrides `requestAdapter` on this worker's `navigator.gpu` and `requestDevice` on each adapter
 * it returns, as own properties: wgpu requests both by itself and has no option for them. No prototype
 * is changed. `onLost` is called when a device is lost for any reason but being destroyed.
 */
export function extendWebGpu(
  onLost: (message: string) => void,
  onOutOfMemory: OnOutOfMemory,
): WebGpuExtension {
  const devices: GPUDevice[] = [];
  const operations = new GpuOperations();
  const extension: { -readonly [name in keyof WebGpuExtension]: WebGpuExtension[name] } = {
    device: undefined,
    operations,
    destroy() {
      for (const device of devices) device.destroy();
    },
  };
  const { gpu } = navigator;
  // No WebGPU here: the engine itself reports that.
  if (gpu === undefined) return extension;
  const requestAdapter = gpu.requestAdapter.bind(gpu);
  gpu.requestAdapter = async (options) => {
    const adapter = await operations.track(requestAdapter(options));
    if (adapter === null) return null;
    const requestDevice = adapter.requestDevice.bind(adapter);
    adapter.requestDevice = async (descriptor = {}) => {
      const requiredFeatures = new Set(descriptor.requiredFeatures ?? []);
      if (adapter.features.has("subgroups")) requiredFeatures.add("subgroups");
      const device = await operations.track(
        requestDevice({ ...descriptor, requiredFeatures: [...requiredFeatures] }),
      );
      devices.push(device);
      operations.watch(device);
      watchMemoryOf(device, onOutOfMemory);
      extension.device = describe(adapter, device);
      void device.lost.then(({ reason, message }) => {
        if (reason !== "destroyed") onLost(message || "no reason given");
      });
      return device;
    };
    return adapter;
  };
  return extension;
}

/** Firefox leaves everything empty but whether the adapter is software. */
const hiddenName = (isSoftware: boolean) =>
  `${isSoftware ? "software" : "WebGPU"} adapter (the browser hides its name)`;

function describe(adapter: GPUAdapter, device: GPUDevice): ExtendedDevice {
  const { description, vendor, architecture, device: model, isFallbackAdapter } = adapter.info;
  const named = description || [vendor, architecture, model].filter(Boolean).join(" ");
  return {
    adapter: named || hiddenName(isFallbackAdapter),
    subgroups: device.features.has("subgroups"),
    packedDot: navigator.gpu.wgslLanguageFeatures?.has("packed_4x8_integer_dot_product") ?? false,
    compileAhead: compileAheadOn(device),
  };
}
