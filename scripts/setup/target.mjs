//! Cargo's target folder.

import { resolve } from "node:path";
import { root } from "../process.mjs";

export function targetFolder() {
  return resolve(root, process.env.CARGO_TARGET_DIR ?? "target");
}
