//! The bytes that a device copies per second, each counted where it is read and where it is written.

const GPU_BYTES = 1 << 27;
const CPU_BYTES = 1 << 26;
const ROUNDS = 5;
/** `GPUBufferUsage`. */
const [COPY_SRC, COPY_DST] = [4, 8];

/** The rate of the GPU: a buffer is copied to another one. Undefined where there is no GPU or too little memory. */
export async function gpuBandwidth() {
  const adapter = await navigator.gpu?.requestAdapter();
  const device = await adapter?.requestDevice();
  if (!device) return undefined;
  try {
    device.pushErrorScope("out-of-memory");
    const usage = COPY_SRC | COPY_DST;
    const [from, to] = [0, 1].map(() => device.createBuffer({ size: GPU_BYTES, usage }));
    if ((await device.popErrorScope()) || !from || !to) return undefined;
    let best = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const copies = 4;
      const encoder = device.createCommandEncoder();
      for (let i = 0; i < copies; i++) encoder.copyBufferToBuffer(from, 0, to, 0, GPU_BYTES);
      const start = performance.now();
      device.queue.submit([encoder.finish()]);
      await device.queue.onSubmittedWorkDone();
      best = Math.max(best, (2 * copies * GPU_BYTES * 1000) / (performance.now() - start));
    }
    return best;
  } finally {
    device.destroy();
  }
}

/** The rate of one thread of the CPU. More threads reach more. */
export async function cpuBandwidth() {
  const [from, to] = [new Uint8Array(CPU_BYTES).fill(1), new Uint8Array(CPU_BYTES)];
  let best = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now();
    to.set(from);
    best = Math.max(best, (2 * CPU_BYTES * 1000) / (performance.now() - start));
    // The page stays responsive.
    await new Promise((resolve) => setTimeout(resolve));
  }
  return Number.isFinite(best) ? best : undefined;
}
