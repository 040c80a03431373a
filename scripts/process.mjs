//! Runs other programs, with their output on stderr or captured, and finds programs on PATH. Nothing here writes to
//! stdout, which is reserved for the caller's result.

import { spawn, spawnSync } from "node:child_process";
import { accessSync, constants as fileModes, realpathSync, statSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url));
export const windows = process.platform === "win32";

/** An error that the user can fix. It is shown without a stack trace, with `remedy` on separate lines. */
export class Remediable extends Error {
  constructor(message, remedy) {
    super(message);
    this.remedy = remedy;
  }
}

/** One line of progress on stderr. */
export function say(text) {
  process.stderr.write(`${text}\n`);
}

/** The first executable of that name on `path`, or undefined. */
export function which(name, path = process.env.PATH ?? "") {
  const suffixes = windows ? ["", ".exe", ".cmd"] : [""];
  for (const folder of path.split(delimiter)) {
    for (const suffix of suffixes) {
      const file = join(folder, name + suffix);
      try {
        accessSync(file, fileModes.X_OK);
        if (statSync(file).isFile()) return file;
      } catch {
        // Not in this folder.
      }
    }
  }
  return undefined;
}

/** The trimmed stdout of a short-running program; undefined if it is missing or fails. */
export function capture(program, args, options = {}) {
  const done = spawnSync(program, args, {
    cwd: root,
    encoding: "utf8",
    timeout: 20_000,
    ...options,
  });
  return done.status === 0 ? done.stdout.trim() : undefined;
}

/** The exit status of a program that ran into its limit. */
export const TIMED_OUT = 124;
/** The time that a program may take to end after it was asked to. */
const END_LIMIT_MS = 10_000;

/** The programs that a program started, and those that these started. */
function descendants(pid) {
  const lines = capture("ps", ["-A", "-o", "pid=,ppid="])?.split("\n") ?? [];
  const found = [pid];
  // A parent may be listed after its children.
  for (const parent of found) {
    for (const line of lines) {
      const [child, ppid] = line.trim().split(/\s+/).map(Number);
      if (ppid === parent && !found.includes(child)) found.push(child);
    }
  }
  return found.slice(1);
}

/**
 * Ends a program and all that it started, which would otherwise keep its output open. They have no process group of their
 * own: Linux shares processor time between sessions first, so the low priority of a background build would mean nothing.
 */
function endTree(child) {
  const pids = windows ? [] : descendants(child.pid);
  const send = (signal) => {
    child.kill(signal);
    for (const pid of pids) {
      try {
        process.kill(pid, signal);
      } catch {
        // It has exited.
      }
    }
  };
  send("SIGTERM");
  setTimeout(() => send("SIGKILL"), END_LIMIT_MS).unref();
}

/**
 * Runs a program to its end. Its stdout and stderr both go to our stderr, or through `onOutput(text)`.
 * With `background`, it runs at low priority.
 * Resolves with the exit status (`TIMED_OUT` after `timeout_ms`, or after `silence_ms` without output if there is `onOutput`; 127 if
 * the program could not be started).
 */
export function run(
  program,
  args,
  { env, cwd = root, timeout_ms, silence_ms, background = false, onOutput } = {},
) {
  return new Promise((resolve) => {
    // npm and similar programs are .cmd files on Windows, which only a shell can start.
    const shell = windows && /\.cmd$|^npm$|^npx$/.test(program);
    const child = spawn(program, args, {
      cwd,
      env: { ...process.env, ...env },
      shell,
      stdio: ["ignore", onOutput ? "pipe" : 2, onOutput ? "pipe" : 2],
    });
    if (background && child.pid !== undefined) {
      try {
        setPriority(child.pid, constants.priority.PRIORITY_LOW);
      } catch {
        // It has already exited.
      }
    }
    let timedOut = false;
    const limit = (why, ms) =>
      setTimeout(() => {
        timedOut = true;
        say(`\n${program}: ended after ${Math.round(ms / 1000)} s${why}`);
        endTree(child);
      }, ms);
    const timer = timeout_ms ? limit("", timeout_ms) : undefined;
    const silence = silence_ms && onOutput ? limit(" without output", silence_ms) : undefined;
    if (onOutput) {
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding("utf8");
        stream.on("data", (text) => {
          silence?.refresh();
          onOutput(text);
        });
      }
    }
    const settle = (status) => {
      clearTimeout(timer);
      clearTimeout(silence);
      resolve(status);
    };
    child.on("error", () => settle(127));
    child.on("close", (status, signal) =>
      settle(timedOut ? TIMED_OUT : (status ?? (signal ? 128 : 1))),
    );
  });
}

/** Runs a program that must succeed. */
export async function mustRun(program, args, { remedy, ...options } = {}) {
  const status = await run(program, args, options);
  if (status !== 0) {
    throw new Remediable(
      `\`${[program, ...args].join(" ")}\` failed (exit status ${status})`,
      remedy,
    );
  }
}

/** Whether the module with this `import.meta.url` is the program that node was started with. */
export function isProgram(url) {
  return (
    process.argv[1] !== undefined &&
    realpathSync(process.argv[1]) === realpathSync(fileURLToPath(url))
  );
}

/** A program of an npm dependency. */
export function npmProgram(name) {
  return join(root, "node_modules", ".bin", windows ? `${name}.cmd` : name);
}

/** Calls `work` with the command-line arguments. If it throws, prints a clear message and sets the exit status. */
export async function main(work) {
  // If the reader of stdout exits (`| head`), the program ends without an error.
  process.stdout.on("error", (error) => process.exit(error.code === "EPIPE" ? 0 : 1));
  try {
    process.exitCode = (await work(process.argv.slice(2))) ?? 0;
  } catch (error) {
    say("");
    say(`inpage: ${error instanceof Remediable ? error.message : (error.stack ?? error)}`);
    if (error.remedy) say(`\n${error.remedy}`);
    process.exitCode = error.exitStatus ?? 1;
  }
}
