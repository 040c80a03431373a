//! The threads of the CPU device: workers that compute parts of products in the memory of the engine worker's module.
//! They need shared memory, which browsers give to cross-origin isolated pages and frames only. How parts are taken is the concern of
//! `cpu_division.ts`.
//!
//! Threads run the kernel module only (`cpu_division.ts`). The main module is compiled without threads and always runs
//! on the engine's worker. In a cross-origin isolated page, and in Node, Deno and Bun, its memory is declared as shared
//! when it is loaded (`shared_memory.ts` rewrites a few bytes, `scripts/glue.mjs` does the same for the glue code).
//! Each thread instantiates the kernel module, in its version without relaxed SIMD if need be, on that memory with a
//! stack of its own. It takes parts of a product or of an attention from a counter in shared memory, spins for 0.1 ms
//! when there are none, and then sleeps. So there is one wasm build, no nightly compiler, and one copy of the weights.
//! Results do not depend on which thread computes a part.

import { InvalidOptions } from "../exchange/error_response.js";
import { platform } from "../platform.js";
import {
  type ComputePart,
  computeProduct,
  createDivision,
  type Division,
  serveProducts,
} from "./cpu_division.js";
import { compileCpuKernels, type CpuKernels, startCpuKernels } from "./cpu_kernels.js";

/** The name of a worker that is a thread: it runs the engine worker's script. */
const THREAD_NAME = "inpage-cpu-thread";
/** A cautious limit for machines with many processors: more than two threads were not measured. */
const MAX_DEFAULT_THREADS = 8;

/** The data that a thread needs to start. */
interface ThreadStart {
  module: WebAssembly.Module;
  memory: WebAssembly.Memory;
  stackTop: number;
  division: Division;
}

/** `here`: the thread's script runs. Then `ready` to compute, or `failed` to start. */
type ThreadMessage = "here" | "ready" | "failed";

/** Computes a product in some parts; returns 0 if it does not compute it. */
export type ComputeProduct = (address: number, parts: number) => number;

/**
 * The number of threads that the CPU device may use, with the engine worker's own: `given`, or as many as the machine has.
 *
 * @throws InvalidOptions if `given` is not a number of threads
 */
export function threadLimit(given: number | undefined): number {
  if (given !== undefined && (!Number.isSafeInteger(given) || given < 1)) {
    throw new InvalidOptions(`threads: ${given} is not a positive integer`);
  }
  if (!platform().sharesMemory) return 1;
  return given ?? Math.min(navigator.hardwareConcurrency, MAX_DEFAULT_THREADS);
}

/**
 * Starts `threads - 1` workers, fewer if some do not start. Returns what computes a product on all of them and this
 * thread, and their number. `undefined` if the kernels do not fit the memory.
 */
export async function startCpuThreads(
  kernels: CpuKernels,
  memory: WebAssembly.Memory,
  stackTop: () => number,
  threads: number,
): Promise<{ computeProduct: ComputeProduct; threads: number } | undefined> {
  const module = await compileCpuKernels(kernels, memory);
  const compute = module && startCpuKernels(module, memory, stackTop());
  if (!compute) return undefined;
  const alone = (address: number) => compute(address, 0, 1);
  // Threads need shared memory, which the browser may have refused.
  if (threads < 2 || memory.buffer instanceof ArrayBuffer)
    return { computeProduct: alone, threads: 1 };
  const division = createDivision();
  const starts = Array.from({ length: threads - 1 }, () =>
    startThread({ module, memory, stackTop: stackTop(), division }),
  );
  const started = (await Promise.all(starts)).filter(Boolean).length;
  if (started === 0) return { computeProduct: alone, threads: 1 };
  return {
    computeProduct: (address, parts) => +computeProduct(division, compute, address, parts),
    threads: started + 1,
  };
}

/** Starts a worker; resolves with whether it is ready to compute. It ends with the worker that called this. */
function startThread(start: ThreadStart): Promise<boolean> {
  return new Promise((resolve) => {
    try {
      const worker = platform().startCpuThread(THREAD_NAME);
      worker.onmessage = ({ data }: MessageEvent<ThreadMessage>) => {
        if (data === "here") worker.postMessage(start);
        else resolve(data === "ready");
      };
      worker.onerror = () => resolve(false);
    } catch {
      resolve(false);
    }
  });
}

/** The part of a worker's scope that a thread needs. */
interface ThreadScope {
  readonly name: string;
  addEventListener(type: "message", listener: (event: MessageEvent<ThreadStart>) => void): void;
  postMessage(message: ThreadMessage): void;
}

/** If the worker of `scope` is a thread, serves it forever from its first message on, and returns true. */
export function isServedAsThread(scope: ThreadScope): boolean {
  if (scope.name !== THREAD_NAME) return false;
  scope.addEventListener("message", ({ data: { module, memory, stackTop, division } }) => {
    const compute: ComputePart | undefined = startCpuKernels(module, memory, stackTop);
    scope.postMessage(compute ? "ready" : "failed");
    if (compute) serveProducts(division, compute);
  });
  scope.postMessage("here");
  return true;
}
