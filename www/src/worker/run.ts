//! Runs the engine worker: connects the wasm module to `worker_host.ts`.

import { EngineFailure, InvalidOptions, messageOf } from "../exchange/error_response.js";
import { InpageEngine, cpuKernelStackTop, inspectModel, useCpuKernels } from "../wasm/inpage.js";
import { platform } from "../platform.js";
import { fetchCpuKernels } from "./cpu_kernels.js";
import { isServedAsThread, startCpuThreads, threadLimit } from "./cpu_threads.js";
import type { ModelFiles } from "../byte_source.js";
import type { EngineFactory } from "../wasm/hosted_engine.js";
import { fetchImage } from "./fetch_image.js";
import { startMainModule } from "./main_module.js";
import { nextTurn } from "./next_turn.js";
import { hasHardwareAdapter } from "../hardware_adapter.js";
import { extendWebGpu } from "./webgpu_features.js";
import { hostEngine } from "./worker_host.js";
import type { WorkerScope } from "../worker_scopes.js";

if (!isServedAsThread(self)) hostEngine(self as unknown as WorkerScope, createEngine);

async function createEngine(
  ...[options, onDeath, dead, kept]: Parameters<EngineFactory>
): ReturnType<EngineFactory> {
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
  const limit = threadLimit(options.threads);
  // Whether memory is shared is decided before the module starts, and an adapter is requested only if that matters.
  const mayUseCpu = limit > 1 && device !== "webgpu";
  const usesCpu = mayUseCpu && (device === "cpu" || !(await hasHardwareAdapter()));
  const threads = usesCpu ? limit : 1;
  const [keptKernels, memory, cpuKernels] = await Promise.all([
    kept,
    startMainModule(wasmUrl, threads > 1),
    device === "webgpu" ? undefined : fetchCpuKernels(wasmUrl, threads > 1),
  ]);
  if (cpuKernels) {
    const started = await startCpuThreads(cpuKernels, memory, cpuKernelStackTop, threads);
    if (started) useCpuKernels(started.computeProduct, started.threads, cpuKernels.relaxed);
  }
  const onPanic = (message: string) => onDeath(new EngineFailure("internal_error", message));
  try {
    const engine = InpageEngine.create({
      ...{ modelId, switches, device, pageHasWebGpu, load, kernels, keptKernels, webgpu },
      ...{ nextTurn, onPanic, fetchImage, decodeImage: platform().decodeImage },
    });
    return Object.assign(engine, {
      pendingOperation: () => webgpu.operations.oldest,
      memoryNeeded: async (files: ModelFiles) =>
        (await inspectModel(files, { load })).model?.memory?.totalBytes,
    });
  } catch (error) {
    throw new InvalidOptions(messageOf(error));
  }
}
