//! Starts `inpage serve` as a program of its own.

import { spawn } from "node:child_process";
import { join } from "node:path";
import { root } from "../../scripts/process.mjs";

const COMMAND = join(root, "www/bin/inpage.mjs");

/** Runs the command to its end. */
export function runServe(...args) {
  return new Promise((resolve) => {
    const { child, output } = spawnServe(args);
    child.on("close", (status) => resolve({ status, ...output }));
  });
}

/** Resolves once the server listens: its address and process id, its output so far, and `stop()`, which gives the exit status. */
export async function startServe(...args) {
  const { child, output } = spawnServe(["--port", "0", ...args]);
  const closed = new Promise((resolve) => child.on("close", resolve));
  const origin = await new Promise((resolve, reject) => {
    child.stdout.on("data", () => {
      const found = /^listening on (http:\S+)\n/m.exec(output.stdout);
      if (found) resolve(found[1]);
    });
    closed.then(() => reject(new Error(`it ended: ${output.stderr}`)));
  });
  const stop = (signal = "SIGTERM") => {
    child.kill(signal);
    return closed;
  };
  return { origin, pid: child.pid, output, stop };
}

function spawnServe(args) {
  const child = spawn(process.execPath, [COMMAND, "serve", ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"]) {
    child[name].setEncoding("utf8");
    child[name].on("data", (text) => {
      output[name] += text;
    });
  }
  return { child, output };
}
