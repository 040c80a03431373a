//! Virtual environments with Python packages, under target/.

import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { capture, run, which, windows } from "../../scripts/process.mjs";
import { targetFolder } from "../../scripts/setup/target.mjs";

export const ANTHROPIC = "anthropic==2.13.0";
export const OPENAI = "openai==3.52.0";
export const LITELLM = "litellm==1.104.3";
export const INSTRUCTOR = "instructor==1.17.0";
export const PYDANTIC_AI = "pydantic-ai-slim[openai]==2.38.0";
export const LANGCHAIN_TESTS = "langchain-tests==1.1.9";
export const LANGCHAIN_OPENAI = "langchain-openai==1.7.4";

const PIP_LIMIT_MS = 180_000;

/**
 * An environment `folder` with packages of a version, such as `OPENAI`, and what they need: `{ python }`, its
 * interpreter, or `{ reason }` if it cannot be had.
 */
export async function provideVenv(folder, ...requirements) {
  const path = join(targetFolder(), folder);
  const python = join(path, windows ? "Scripts/python.exe" : "bin/python");
  const versions = requirements.map((requirement) => {
    const [name, version] = requirement.split("==");
    return [name.replace(/\[.*/, ""), version];
  });
  const check = `import json, sys; from importlib.metadata import version
for name, wanted in json.loads(sys.argv[1]): assert version(name) == wanted
print("ok")`;
  const hasPackages = () =>
    existsSync(python) && capture(python, ["-c", check, JSON.stringify(versions)]) === "ok";
  if (hasPackages()) return { python };
  const base = ["python3", "python"].find((program) => which(program));
  if (!base) return { reason: "Python is not installed" };
  // An older version may have left packages that the new one does not accept.
  rmSync(path, { recursive: true, force: true });
  if ((await run(base, ["-m", "venv", path])) !== 0) {
    return { reason: "Python cannot create a venv" };
  }
  const install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
  const status = await run(python, [...install, ...requirements], { timeout_ms: PIP_LIMIT_MS });
  if (status === 0 && hasPackages()) return { python };
  return { reason: `pip cannot install ${requirements.join(" and ")}: no index?` };
}
