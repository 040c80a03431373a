//! The engine worker's script: connects the wasm module to `worker/worker_host.ts`.

import { EngineFailure } from "./exchange/error_response.js";
import init, { InpageEngine } from "./wasm/inpage.js";
import { extendDeviceRequests } from "./worker/webgpu_features.js";
import { hostEngine } from "./worker/worker_host.js";
import type { WorkerScope } from "./worker_scopes.js";

hostEngine(self as unknown as WorkerScope, async (options, onDeath) => {
  extendDeviceRequests((message) =>
    onDeath(new EngineFailure("device_lost", `the GPU device was lost: ${message}`)),
  );
  const { modelId, switches, load, wasmUrl } = options;
  await init(wasmUrl === undefined ? undefined : { module_or_path: wasmUrl });
  return InpageEngine.create(modelId, JSON.stringify(switches), JSON.stringify(load), (message) =>
    onDeath(new EngineFailure("internal_error", message)),
  );
});
