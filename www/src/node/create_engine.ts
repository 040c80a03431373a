//! `createEngine` outside of a browser: checks and completes the options. `engine/engine.ts` does the rest.

import { createEngine as createEngineAnywhere } from "../engine/engine.js";
import type { Engine } from "../engine/engine.js";
import type { EngineOptions, ModelsOption } from "../options/engine_options.js";
import { InpageError } from "../api/inpage_error.js";
import { invalidOption } from "../options/names.js";

/**
 * Starts an engine in a thread of its own and loads its model. Paths and `file:` URLs name files on disk, which are read in
 * place. It computes on the CPU unless `device` is `webgpu`. The program runs until the engine is disposed.
 *
 * @throws InpageError if the model cannot be read or run, or if there is no WebGPU and `device` requires it
 * @throws InpageError `invalid_option` for an option that cannot be used, or that only a page has
 * @throws DOMException named `AbortError` if `signal` aborts first
 */
export async function createEngine(options: EngineOptions = {}): Promise<Engine> {
  for (const name of ["shared", "workerUrl"] as const) {
    if (options[name]) throw invalidOption(`${name} has a meaning only in a browser`);
  }
  if (options.endpoint?.remoteImages) {
    throw invalidOption(
      "endpoint.remoteImages has a meaning only in a browser, whose rules say what a page may fetch: send data: URLs",
    );
  }
  return createEngineAnywhere({
    ...options,
    ...(options.models && { models: withDevices(options.models) }),
    device: deviceFor(options.device),
    shared: false,
    // A stream that is transferred to another thread would keep the program running.
    bodyTransport: "chunks",
  });
}

/** The models with the devices that they have here. Wrong values are refused later. */
function withDevices(models: ModelsOption): ModelsOption {
  const withDevice = (model: ModelsOption[string]) =>
    typeof model === "object" && model !== null && "device" in model
      ? { ...model, device: deviceFor(model.device) }
      : model;
  const entries = Object.entries(models).map(([name, model]) => [name, withDevice(model)]);
  return Object.fromEntries(entries);
}

/** Software adapters are slower than the CPU device, and whether an adapter is one is not always known here. */
function deviceFor(device: EngineOptions["device"] = "auto"): NonNullable<EngineOptions["device"]> {
  if (device === "auto") return "cpu";
  if (device === "webgpu" && globalThis.navigator?.gpu === undefined) {
    throw InpageError.local(
      "no_webgpu_device",
      'there is no navigator.gpu in this program (Deno has one): device "cpu", the default here, computes on the CPU',
    );
  }
  return device;
}
