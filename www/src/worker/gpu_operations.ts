//! Numbers the operations of the GPU whose end the engine waits for, so that the page notices one that never ends. Lost devices
//! are reported by `webgpu_features.ts`.

export class GpuOperations {
  #count = 0;
  readonly #pending = new Set<number>();

  /** The number of the oldest operation that has not ended. */
  get oldest(): number | undefined {
    return this.#pending.values().next().value;
  }

  track<T>(operation: Promise<T>): Promise<T> {
    const number = ++this.#count;
    this.#pending.add(number);
    const end = () => void this.#pending.delete(number);
    operation.then(end, end);
    return operation;
  }

  /** Tracks the readbacks of `device`, the ends of its submits and its compilations, by overriding methods of its objects. */
  watch(device: GPUDevice): void {
    const createBuffer = device.createBuffer.bind(device);
    device.createBuffer = (descriptor) => {
      const buffer = createBuffer(descriptor);
      if ((descriptor.usage & MAPPED_USAGES) === 0) return buffer;
      const mapAsync = buffer.mapAsync.bind(buffer);
      buffer.mapAsync = (...range) => this.track(mapAsync(...range));
      return buffer;
    };
    const { queue } = device;
    const onSubmittedWorkDone = queue.onSubmittedWorkDone.bind(queue);
    queue.onSubmittedWorkDone = () => this.track(onSubmittedWorkDone());
    const compile = device.createComputePipelineAsync.bind(device);
    device.createComputePipelineAsync = (descriptor) => this.track(compile(descriptor));
  }
}

/** `GPUBufferUsage.MAP_READ | GPUBufferUsage.MAP_WRITE` */
const MAPPED_USAGES = 0x0001 | 0x0002;
