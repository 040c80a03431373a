//! Whether there is a GPU that is not software: the page asks before it starts a worker, and the worker before it starts the engine.

/** Whether the engine can expect a GPU that is not software. */
export async function hasHardwareAdapter(): Promise<boolean> {
  try {
    const adapter = await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });
    return adapter ? !adapter.info.isFallbackAdapter : false;
  } catch {
    return false;
  }
}
