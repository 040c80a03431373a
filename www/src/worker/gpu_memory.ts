//! Notices when the GPU has no memory for a buffer. wgpu would panic at the first use of that buffer, with a message
//! that says nothing about memory.

/** Called with a message that states sizes and remedies. */
export type OnOutOfMemory = (message: string) => void;

/** Makes `device` report buffers that it has no memory for, with the memory that its other buffers take. */
export function watchMemoryOf(device: GPUDevice, onOutOfMemory: OnOutOfMemory): void {
  const createBuffer = device.createBuffer.bind(device);
  let usedBytes = 0;
  // wgpu drops buffers without destroying them.
  const dropped = new FinalizationRegistry<number>((bytes) => {
    usedBytes -= bytes;
  });
  const refused = (bytes: number, usedBytes: number) =>
    onOutOfMemory(
      `the GPU has no memory for another ${mebibytes(bytes)}, while this engine uses ${mebibytes(usedBytes)}. A smaller load.contextTokens and load.kvPoolTokens, load.kvFormat: "q8_0", or a model with fewer bits per weight needs less; memoryBudgetBytes refuses a model before its download`,
    );
  device.createBuffer = (descriptor) => {
    const bytes = descriptor.size;
    // Other buffers are created before the browser answers.
    const usedBefore = usedBytes;
    device.pushErrorScope("out-of-memory");
    let buffer: GPUBuffer;
    try {
      buffer = createBuffer(descriptor);
    } catch (error) {
      device.popErrorScope().catch(() => {});
      // A buffer that is mapped at its creation may not fit the page's own memory.
      if (error instanceof RangeError) refused(bytes, usedBefore);
      throw error;
    }
    device.popErrorScope().then(
      (error) => {
        if (error === null) return;
        usedBytes -= bytes;
        dropped.unregister(buffer);
        refused(bytes, usedBefore);
      },
      // The device is lost, which is reported elsewhere.
      () => {},
    );
    usedBytes += bytes;
    dropped.register(buffer, bytes, buffer);
    const destroy = GPUBuffer.prototype.destroy;
    buffer.destroy = function () {
      if (dropped.unregister(this)) usedBytes -= bytes;
      destroy.call(this);
    };
    return buffer;
  };
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
