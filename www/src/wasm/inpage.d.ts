//! The exports of `src/web`, written by hand: the build puts the module itself next to the compiled files. The browser
//! tests start the real module through these types.

import type {
  DeviceChoice,
  EngineSwitches,
  InspectionOptions,
  LoadOptions,
  ModelInspection,
} from "../generated/types.js";
import type { ModelFiles } from "../byte_source.js";
import type { DecodedImage } from "../platform.js";
import type { GivenWebGpu, HostedEngine } from "./hosted_engine.js";

/** Compiles and starts the module; its start function runs once. */
export default function init(options?: {
  module_or_path?: string | URL | BufferSource | undefined;
}): Promise<{ memory: WebAssembly.Memory }>;

/** The end of a part of the memory for the stack of the CPU kernels; a new part with each call. */
export function cpuKernelStackTop(): number;

/**
 * Computes products of the CPU device with a function of another module from now on. It gets the address of a product and
 * the number of parts to divide it into, and returns 0 if it does not compute it. `relaxed`: with relaxed SIMD.
 */
export function useCpuKernels(
  computeProduct: (address: number, parts: number) => number,
  threads: number,
  relaxed: boolean,
): void;

/** The argument of `InpageEngine.create`. */
export interface EngineStart {
  /** The model's id in requests. */
  readonly modelId: string;
  /** The endpoint's switches, as given by the caller; Rust validates them. */
  readonly switches: EngineSwitches;
  /** The device on which the model computes, as given by the caller; Rust validates it. */
  readonly device?: DeviceChoice | undefined;
  /** True if the page has WebGPU, whether the worker does or not. */
  readonly pageHasWebGpu?: boolean;
  /** The options of the load, as given by the caller; Rust validates it. */
  readonly load: LoadOptions;
  /** The result of `kernels()` of a lost engine: this one uses the same if they compute correctly. */
  readonly kernels?: string | undefined;
  /** The result of `kernels()` of an engine in an earlier visit: if nothing has changed, the kernels are not tested again. */
  readonly keptKernels?: string | undefined;
  /** The functions that JavaScript adds to wgpu; without them the engine uses WebGPU as wgpu does. */
  readonly webgpu?: GivenWebGpu;
  /** Resolves once waiting events were handled: the CPU device computes on the thread that receives them. */
  nextTurn(): Promise<void>;
  /**
   * The first frame of an image's file, turned as Exif says. Without it the module uses `createImageBitmap`. BMP files
   * are not passed.
   */
  decodeImage?: ((file: Uint8Array) => Promise<DecodedImage>) | undefined;
  /** The file of an image at a URL, of at most `maxBytes`. */
  fetchImage(url: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array>;
  /** Called with a message when the module panics; the module must not be called afterwards. */
  onPanic(message: string): void;
}

export const InpageEngine: {
  /**
   * The endpoint, with the model registered as `loading`.
   *
   * @throws Error naming the switch or option that is unknown or has a wrong value
   */
  create(options: EngineStart): HostedEngine;
};

/**
 * Inspects the model that `files` make up, from their headers. Needs no GPU.
 *
 * @throws Error with a `code` if the files cannot be read or an option is wrong
 */
export function inspectModel(
  files: ModelFiles,
  options: InspectionOptions,
): Promise<ModelInspection>;
