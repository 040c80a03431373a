//! Compiles compute pipelines before wgpu requests them: all at once, on the browser's own threads. wgpu requests each
//! at its first launch, one at a time, and the device waits for it.

/** The entry point of every kernel. */
const ENTRY_POINT = "main";

/**
 * Makes `device` return pipelines that were compiled ahead when it is asked to create them, each once. Returns the
 * function that compiles WGSL sources; its promise resolves when all are compiled. Sources that the browser refuses are
 * skipped: their errors appear when wgpu requests them.
 */
export function compileAheadOn(device: GPUDevice): (sources: string[]) => Promise<void> {
  const modules = new Map<string, GPUShaderModule>();
  const sourceOf = new WeakMap<GPUShaderModule, string>();
  const compiled = new Map<GPUShaderModule, GPUComputePipeline>();
  // A source is compiled ahead once: wgpu keeps the pipeline that it was given.
  const compiling = new Map<string, Promise<void>>();
  const createShaderModule = device.createShaderModule.bind(device);
  const createComputePipeline = device.createComputePipeline.bind(device);

  device.createShaderModule = (descriptor) =>
    modules.get(descriptor.code) ?? createShaderModule(descriptor);
  device.createComputePipeline = (descriptor) => {
    const { module, entryPoint, constants } = descriptor.compute;
    const pipeline = compiled.get(module);
    const matches = descriptor.layout === "auto" && entryPoint === ENTRY_POINT && !constants;
    if (pipeline === undefined || !matches) return createComputePipeline(descriptor);
    const source = sourceOf.get(module) ?? "";
    compiled.delete(module);
    modules.delete(source);
    return pipeline;
  };

  const compile = async (code: string) => {
    device.pushErrorScope("validation");
    const module = createShaderModule({ code });
    device.popErrorScope().catch(() => {});
    const compute = { module, entryPoint: ENTRY_POINT };
    compiled.set(module, await device.createComputePipelineAsync({ layout: "auto", compute }));
    modules.set(code, module);
    sourceOf.set(module, code);
  };
  return async (sources) => {
    // The pipelines that a request needs are compiled already, or this waits for them while others compile in the background.
    for (const source of sources) {
      if (!compiling.has(source)) compiling.set(source, compile(source));
    }
    await Promise.allSettled(sources.map((source) => compiling.get(source)));
  };
}
