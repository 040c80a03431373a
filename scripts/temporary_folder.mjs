//! Temporary folders that are deleted when the process ends, unless it is killed.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folders = new Set();

/** Creates a folder whose name starts with the given prefix. */
export function temporaryFolder(prefix) {
  if (folders.size === 0) {
    process.once("exit", removeAll);
    // A test runner ends files that take too long with a signal, which does not trigger an exit event.
    for (const [signal, number] of [
      ["SIGINT", 2],
      ["SIGTERM", 15],
    ]) {
      process.once(signal, () => process.exit(128 + number));
    }
  }
  const folder = mkdtempSync(join(tmpdir(), prefix));
  folders.add(folder);
  return folder;
}

function removeAll() {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}
