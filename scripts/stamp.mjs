//! Stores the inputs of the last run of a build step, so that an unchanged step is skipped. A stamp is a hash of file
//! contents, not of times, so a checkout or a touch does not trigger a rebuild.

import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join, relative } from "node:path";
import { root } from "./process.mjs";

const folder = join(root, "target", "stamps");

/** Every file under a path, sorted. A missing path has no files. */
export function filesUnder(path) {
  if (!existsSync(path)) return [];
  if (statSync(path).isFile()) return [path];
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => !entry.name.startsWith("."))
    .map((entry) => join(path, entry.name))
    .sort()
    .flatMap(filesUnder);
}

/** Hash of the named files and folders (relative to the repository) and of further values. */
export function digest(paths, ...values) {
  const hash = createHash("sha256");
  for (const path of paths) {
    for (const file of filesUnder(join(root, path))) {
      hash.update(`${relative(root, file)}\0`);
      hash.update(createHash("sha256").update(readFileSync(file)).digest());
    }
  }
  hash.update(JSON.stringify(values));
  return hash.digest("hex");
}

export function readStamp(name) {
  try {
    return JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"));
  } catch {
    return undefined;
  }
}

export function writeStamp(name, value) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.json`), JSON.stringify(value));
}

export function dropStamp(name) {
  rmSync(join(folder, `${name}.json`), { force: true });
}

/** Whether `name` was stamped with `value` and all its outputs still exist. */
export function isFresh(name, value, outputs) {
  return readStamp(name) === value && outputs.every((path) => existsSync(join(root, path)));
}
