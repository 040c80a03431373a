//! The native door: builds and starts `examples/serve.rs` with hooks.

import { spawn } from "node:child_process";
import { join } from "node:path";
import OpenAI from "openai";
import { mustRun, Remediable, root, windows } from "../../scripts/process.mjs";
import { targetFolder } from "../../scripts/setup/target.mjs";

/** Long enough for every case, short enough for a software GPU. */
const CONTEXT_TOKENS = 512;

/** Builds the server; returns the path of the program. */
export async function buildServer() {
  const args = ["build", "--locked", "--example", "serve", "--features", "test-hooks"];
  await mustRun("cargo", args, { remedy: "The compiler's messages are above." });
  return join(targetFolder(), "debug", "examples", windows ? "serve.exe" : "serve");
}

/** Starts the server on a free port: `{ origin, close() }`. */
export async function startServer(
  program,
  { model, projector, device = "gpu", context = CONTEXT_TOKENS, env = {} },
) {
  const name = model.replace(/^.*[\\/]|\.gguf$/g, "");
  const args = ["--port", "0", "--model", model, "--id", `inpage/${name}`];
  if (projector) args.push("--projector", projector);
  args.push("--context", String(context), "--device", device);
  const server = spawn(program, args, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", 2],
  });
  // The server must not survive a crash of this program.
  const kill = () => server.kill();
  process.once("exit", kill);
  const close = () =>
    new Promise((resolve) => {
      process.off("exit", kill);
      if (server.exitCode !== null || server.signalCode !== null) resolve();
      server.once("exit", resolve);
      kill();
    });
  const origin = await new Promise((resolve, reject) => {
    let output = "";
    server.stdout.on("data", (text) => {
      output += text;
      const match = /^listening on (http:\S+)$/m.exec(output);
      if (match) resolve(match[1]);
    });
    server.once("error", reject);
    server.once("exit", (status) => {
      const remedy = "Its messages stand above. --device cpu computes without a GPU.";
      reject(new Remediable(`the server ended with status ${status}`, remedy));
    });
  });
  return { origin, close };
}

/** The server as a door. */
export function nativeDoor(origin) {
  return {
    name: "native",
    origin,
    fetch: (url, init) => fetch(url, init),
    OpenAI,
    async hooks(command) {
      const init = { method: "POST", body: JSON.stringify(command) };
      const response = await fetch(`${origin}/_hooks`, init);
      const text = await response.text();
      if (!response.ok) throw new Error(`${JSON.stringify(command).slice(0, 100)}: ${text}`);
      return JSON.parse(text);
    },
  };
}
