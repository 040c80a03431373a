//! Folders that are gone when the process is, however it ends short of being killed outright.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folders = new Set();

/** A new folder whose name begins so. */
export function temporaryFolder(prefix) {
  if (folders.size === 0) {
    process.once("exit", removeAll);
    // A test runner ends files that take too long by a signal, which is no exit.
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
