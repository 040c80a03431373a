//! Finds the test programs of the repository by the names of their files. Runs nothing.

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { root } from "./process.mjs";

/** Test programs in Rust that need a GPU, or lavapipe. */
export const GPU_TESTS = ["kernels", "parity"];

/** Names in a folder of the repository that end with `suffix`, sorted; none if it does not exist. */
export const filesIn = (folder, suffix) =>
  existsSync(join(root, folder))
    ? readdirSync(join(root, folder))
        .filter((name) => name.endsWith(suffix))
        .sort()
    : [];

/** Names of the test programs in Rust. A test is a file `tests/NAME.rs` or a folder `tests/NAME` with a main.rs. */
export const rustTestNames = () => [
  ...filesIn("tests", ".rs").map((name) => name.slice(0, -".rs".length)),
  ...filesIn("tests", "").filter((name) => existsSync(join(root, "tests", name, "main.rs"))),
];
