//! The sources of the key of `inpage serve`: an argument, a file, or the environment. `ps` shows arguments to every user of
//! the machine.

import { fstatSync, openSync, readFileSync, closeSync } from "node:fs";

const VARIABLE = "INPAGE_API_KEY";

/** Bits of a file's mode that let every user read it. */
const READABLE_BY_ALL = 0o004;

/**
 * The key of `--api-key`, of `--api-key-file`, or of the environment, in this order; undefined if none is given. `warn` gets
 * what is doubtful about it.
 *
 * @throws Error if it cannot be read or used, without the key
 */
export function apiKeyOf({ "api-key": key, "api-key-file": file }, environment, warn) {
  if (key !== undefined && file !== undefined) {
    throw new Error("--api-key and --api-key-file exclude each other");
  }
  if (key !== undefined) return usable("--api-key", key);
  if (file !== undefined) return usable(`--api-key-file ${file}`, textOf(file, warn));
  const inherited = environment[VARIABLE];
  return inherited === undefined ? undefined : usable(VARIABLE, inherited);
}

function textOf(file, warn) {
  let descriptor;
  try {
    descriptor = openSync(file);
    const status = fstatSync(descriptor);
    if (process.platform !== "win32" && status.isFile() && status.mode & READABLE_BY_ALL) {
      warn(`every user of this machine can read ${file}; chmod 600 ${file} prevents that`);
    }
    // Editors end a file with a line end.
    return readFileSync(descriptor, "utf8").replace(/\r?\n$/, "");
  } catch (error) {
    throw new Error(`--api-key-file ${file}: ${error.message}`);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

function usable(source, key) {
  if (key === "") throw new Error(`${source} is empty`);
  // The characters that a header can carry. A line end would mean that the file has several lines.
  if (!/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(key)) {
    throw new Error(`${source}: a key is one line of ASCII characters without spaces at its ends`);
  }
  return key;
}
