//! Lets checkouts share a target folder. Cargo compares the times of a path crate's files with those of its artifacts, so a new
//! checkout would compile `src/inventory` again, and after it everything that depends on it: most of burn.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { root } from "../process.mjs";
import { filesUnder } from "../stamp.mjs";
import { targetFolder } from "./target.mjs";

/** The path crate that third parties depend on. It changes hardly ever. */
const CRATE = join(root, "src/inventory");

/**
 * Gives the crate's files the time at which their content came to this target folder. Artifacts that are younger were made
 * from it, and older ones are made again.
 */
export function keepArtifactsOfPatches(crate = CRATE, target = targetFolder()) {
  const files = filesUnder(crate);
  const hash = createHash("sha256");
  for (const file of files) hash.update(`${relative(crate, file)}\0`).update(readFileSync(file));
  const digest = hash.digest("hex");
  const record = join(target, "inventory.json");
  let kept;
  try {
    kept = JSON.parse(readFileSync(record, "utf8"));
  } catch {
    // Artifacts without a record were made as cargo judges: from files that are older.
    kept = { digest, time_ms: Math.max(...files.map((file) => statSync(file).mtimeMs)) };
  }
  if (kept.digest !== digest) kept = { digest, time_ms: Date.now() };
  mkdirSync(target, { recursive: true });
  writeFileSync(record, JSON.stringify(kept));
  const time = new Date(kept.time_ms);
  for (const file of files) utimesSync(file, time, time);
}
