//! The engine worker's script: connects the wasm module to `worker/worker_host.ts`.

import { EngineFailure, InvalidOptions, messageOf } from "./exchange/error_response.js";
import init, { InpageEngine, cpuKernelStackTop, useCpuKernels } from "./wasm/inpage.js";
import { compileCpuKernels, startCpuKernels } from "./worker/cpu_kernels.js";
import { nextTurn } from "./worker/next_turn.js";
import { extendWebGpu } from "./worker/webgpu_features.js";
import { hostEngine } from "./worker/worker_host.js";
import type { WorkerScope } from "./worker_scopes.js";

hostEngine(self as unknown as WorkerScope, async (options, onDeath, dead, kept) => {
  const webgpu = extendWebGpu(
    (message) => onDeath(new EngineFailure("device_lost", `the GPU device was lost: ${message}`)),
    // A module that uses such a buffer panics.
    (message) => onDeath(new EngineFailure("out_of_memory", message)),
  );
  dead.addEventListener("abort", () => {
    // A dead module cannot give its buffers back, and the next engine needs the memory. A disposed one ends with the
    // worker.
    if ((dead.reason as EngineFailure).code !== "engine_unavailable") webgpu.destroy();
  });
  const { wasmUrl, modelId, switches, device, pageHasWebGpu, load, kernels } = options;
  const compiling = device === "webgpu" ? undefined : compileCpuKernels(wasmUrl);
  const [keptKernels, { memory }] = await Promise.all([
    kept,
    init(wasmUrl === undefined ? undefined : { module_or_path: wasmUrl }),
  ]);
  const cpuKernels = await compiling;
  const product = cpuKernels && startCpuKernels(cpuKernels, memory, cpuKernelStackTop());
  if (product) useCpuKernels(product);
  const onPanic = (message: string) => onDeath(new EngineFailure("internal_error", message));
  try {
    return InpageEngine.create({
      ...{ modelId, switches, device, pageHasWebGpu, load, kernels, keptKernels, webgpu },
      ...{ nextTurn, onPanic },
    });
  } catch (error) {
    throw new InvalidOptions(messageOf(error));
  }
});
