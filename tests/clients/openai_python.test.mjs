//! The official Python client against the native server, in a virtual environment under target/.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { capture, root, run, which, windows } from "../../scripts/process.mjs";
import { targetFolder } from "../../scripts/setup/target.mjs";
import { startEndpoint } from "./endpoint.mjs";

const PACKAGE = "openai==3.52.0";
const PIP_LIMIT_MS = 120_000;

const folder = join(targetFolder(), "clients-venv");
const python = join(folder, windows ? "Scripts/python.exe" : "bin/python");

const hasPackage = () => {
  const version = "import openai; print('openai==' + openai.__version__)";
  return existsSync(python) && capture(python, ["-c", version]) === PACKAGE;
};

/** Creates the environment. Returns the reason if that fails. */
async function providePython() {
  if (hasPackage()) return undefined;
  const base = ["python3", "python"].find((name) => which(name));
  if (!base) return "Python is not installed";
  if ((await run(base, ["-m", "venv", folder])) !== 0) return "Python cannot create a venv";
  const install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE];
  const status = await run(python, install, { timeout_ms: PIP_LIMIT_MS });
  return status === 0 && hasPackage() ? undefined : `pip cannot install ${PACKAGE}: no index?`;
}

const reason = await providePython();

describe("openai for Python", { skip: reason && `skipped: ${reason}` }, () => {
  let endpoint;

  before(async () => {
    endpoint = await startEndpoint();
  });
  after(() => endpoint?.close());

  test("its script passes", async () => {
    const script = join(root, "tests/clients/openai_client.py");
    let output = "";
    const status = await run(python, [script, endpoint.origin], {
      timeout_ms: 60_000,
      onOutput: (text) => {
        output += text;
      },
    });
    assert.equal(status, 0, output);
    await endpoint.idle();
  });
});
