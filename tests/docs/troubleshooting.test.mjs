//! docs/troubleshooting.md quotes messages as the source has them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { filesUnder } from "../../scripts/stamp.mjs";

/** The source as a reader of its messages sees it: literals that are joined are one, escapes are characters. */
function source() {
  const files = ["src", "www/src"]
    .flatMap((folder) => filesUnder(join(root, folder)))
    .filter((file) => /\.(rs|ts)$/.test(file) && !/_tests?\.rs$/.test(file));
  return files
    .map((file) => readFileSync(file, "utf8"))
    .join("\n")
    .replace(/["`]\s*\+\s*["`]/g, "")
    .replace(/\\\n\s*/g, "")
    .replaceAll('\\"', '"');
}

/** The quoted messages of the headings, but for those of browsers. */
function messages() {
  const page = readFileSync(join(root, "docs/troubleshooting.md"), "utf8");
  return page
    .split("\n")
    .filter((line) => line.startsWith("### ") && !line.endsWith("(a message of the browser)"))
    .flatMap((line) => [...line.matchAll(/`([^`]+)`/g)].map(([, message]) => message));
}

test("docs/troubleshooting.md quotes messages of the source", () => {
  const text = source();
  const found = messages();
  assert.ok(found.length > 20, `${found.length} messages`);
  // `…` stands for what varies. A status is one of many.
  const parts = found.flatMap((message) => message.split("…")).map((part) => part.trim());
  const wanted = parts.map((part) => part.replace(/^answered \d+$/, "answered")).filter(Boolean);
  assert.deepEqual(
    wanted.filter((part) => !text.includes(part)),
    [],
  );
});
