//! Shows the progress of a download on a terminal: one line that is written again.

/** Takes reports of progress. Without a terminal nothing is shown. */
export function progressLine() {
  if (!process.stderr.isTTY) return () => {};
  let width = 0;
  return ({ model, phase, loadedBytes, totalBytes }) => {
    const megabytes = (bytes) => `${(bytes / 1e6).toFixed(0)} MB`;
    const of = totalBytes === undefined ? "" : ` of ${megabytes(totalBytes)}`;
    const what = model === undefined ? phase : `${model}: ${phase}`;
    const line = phase === "ready" ? "" : `${what} ${megabytes(loadedBytes)}${of}`;
    process.stderr.write(`\r${line.padEnd(width)}${phase === "ready" ? "\r" : ""}`);
    width = line.length;
  };
}
