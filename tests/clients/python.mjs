//! Virtual environments with Python packages, under target/.

import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { capture, run, which, windows } from "../../scripts/process.mjs";
import { targetFolder } from "../../scripts/setup/target.mjs";

export const ANTHROPIC = "anthropic==2.13.0";
export const OPENAI = "openai==3.52.0";
export const LITELLM = "litellm==1.104.3";

const PIP_LIMIT_MS = 180_000;

/**
 * An environment `folder` with one package of a version, such as `OPENAI`, and what it needs: `{ python }`, its
 * interpreter, or `{ reason }` if it cannot be had.
 */
export async function provideVenv(folder, requirement) {
  const path = join(targetFolder(), folder);
  const python = join(path, windows ? "Scripts/python.exe" : "bin/python");
  const [name] = requirement.split("==");
  const version = `from importlib.metadata import version; print("${name}==" + version("${name}"))`;
  const hasPackage = () => existsSync(python) && capture(python, ["-c", version]) === requirement;
  if (hasPackage()) return { python };
  const base = ["python3", "python"].find((program) => which(program));
  if (!base) return { reason: "Python is not installed" };
  // An older version may have left packages that the new one does not accept.
  rmSync(path, { recursive: true, force: true });
  if ((await run(base, ["-m", "venv", path])) !== 0) {
    return { reason: "Python cannot create a venv" };
  }
  const install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement];
  const status = await run(python, install, { timeout_ms: PIP_LIMIT_MS });
  if (status === 0 && hasPackage()) return { python };
  return { reason: `pip cannot install ${requirement}: no index?` };
}
