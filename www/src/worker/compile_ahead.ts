//! Compiles compute pipelines before wgpu asks for them: all at once, on the browser's own threads. wgpu
//! asks for one at a time, when it is first launched, and the device waits for each. Knows no kernel.

/** Entry point of every kernel. */
const ENTRY_POINT = "main";

/**
 * Makes `device` hand out pipelines that were compiled ahead when it is asked to create them, each
 * once. Gives the function that compiles WGSL texts; its promise resolves when all are done. What the
 * browser refuses is left out: asked for again, it gives its error where it is looked for.
 */
export function compileAheadOn(device: GPUDevice): (texts: string[]) => Promise<void> {
  const modules = new Map<string, GPUShaderModule>();
  const textOf = new WeakMap<GPUShaderModule, string>();
  const compiled = new Map<GPUShaderModule, GPUComputePipeline>();
  // Until a pipeline is handed out its text is not compiled again.
  const begun = new Map<string, Promise<void>>();
  const createShaderModule = device.createShaderModule.bind(device);
  const createComputePipeline = device.createComputePipeline.bind(device);

  device.createShaderModule = (descriptor) =>
    modules.get(descriptor.code) ?? createShaderModule(descriptor);
  device.createComputePipeline = (descriptor) => {
    const { module, entryPoint, constants } = descriptor.compute;
    const pipeline = compiled.get(module);
    const isAsked = descriptor.layout === "auto" && entryPoint === ENTRY_POINT && !constants;
    if (pipeline === undefined || !isAsked) return createComputePipeline(descriptor);
    const text = textOf.get(module) ?? "";
    compiled.delete(module);
    modules.delete(text);
    begun.delete(text);
    return pipeline;
  };

  const compile = async (code: string) => {
    device.pushErrorScope("validation");
    const module = createShaderModule({ code });
    device.popErrorScope().catch(() => {});
    const compute = { module, entryPoint: ENTRY_POINT };
    compiled.set(module, await device.createComputePipelineAsync({ layout: "auto", compute }));
    modules.set(code, module);
    textOf.set(module, code);
  };
  return async (texts) => {
    for (const text of texts) if (!begun.has(text)) begun.set(text, compile(text));
    await Promise.allSettled(texts.map((text) => begun.get(text)));
  };
}
