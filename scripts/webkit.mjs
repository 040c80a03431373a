//! Starts WebKitGTK's MiniBrowser and drives it with WebDriver. It needs a display: Xvfb's if there is no other.

import { spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { Remediable, which } from "./process.mjs";

const START_LIMIT_MS = 60_000;
const SCRIPT_LIMIT_MS = 5 * 60_000;
const LIBRARIES = "/usr/lib";
const REMEDY = "Install them: apt-get install webkit2gtk-driver xvfb";

/** `WebKitWebDriver` and `MiniBrowser`. */
export function findWebKit() {
  const driver = which("WebKitWebDriver");
  const folders = existsSync(LIBRARIES)
    ? readdirSync(LIBRARIES).flatMap((name) => [
        join(LIBRARIES, name, "webkit2gtk-4.1"),
        join(LIBRARIES, name, "webkitgtk-6.0"),
      ])
    : [];
  const found = folders.find((folder) => existsSync(join(folder, "MiniBrowser")));
  if (driver === undefined || found === undefined) {
    throw new Remediable("WebKitGTK's MiniBrowser or its driver was not found", REMEDY);
  }
  return { driver, browser: join(found, "MiniBrowser") };
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Starts Xvfb if there is no display; returns the environment and the process. */
async function provideDisplay() {
  if (process.env.DISPLAY || process.env.WAYLAND_DISPLAY) return { env: {}, stop() {} };
  const program = which("Xvfb");
  if (program === undefined) throw new Remediable("there is no display, and no Xvfb", REMEDY);
  const args = ["-displayfd", "3", "-screen", "0", "1280x1024x24", "-nolisten", "tcp"];
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "ignore", "pipe"] });
  const number = await new Promise((resolve, reject) => {
    child.stdio[3].once("data", (data) => resolve(String(data).trim()));
    child.once("error", reject);
    child.once("exit", () => reject(new Error("Xvfb exited")));
  });
  return { env: { DISPLAY: `:${number}` }, stop: () => child.kill() };
}

/** `{ open(url), messages, close() }`. WebDriver does not tell what is written to the console: `messages` is empty. */
export async function launchWebKit() {
  const { driver, browser } = findWebKit();
  const display = await provideDisplay();
  const port = await freePort();
  const env = { ...process.env, ...display.env, WEBKIT_DISABLE_COMPOSITING_MODE: "1" };
  const child = spawn(driver, [`--port=${port}`], { stdio: "ignore", env });
  const call = async (method, path, body) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const { value } = await response.json();
    if (!response.ok) throw new Error(`${value.error}: ${value.message}`);
    return value;
  };
  const close = async (session) => {
    if (session !== undefined) await call("DELETE", session).catch(() => {});
    child.kill();
    display.stop();
  };
  try {
    await started(() => call("GET", "/status"));
    const options = { binary: browser, args: ["--automation"] };
    const alwaysMatch = {
      "webkitgtk:browserOptions": options,
      timeouts: { script: SCRIPT_LIMIT_MS },
    };
    const { sessionId } = await call("POST", "/session", { capabilities: { alwaysMatch } });
    const session = `/session/${sessionId}`;
    return {
      async open(url) {
        const { handle } = await call("POST", `${session}/window/new`, { type: "tab" });
        const page = new Page((path, body) => call("POST", `${session}${path}`, body), handle);
        await page.navigate(url);
        return page;
      },
      messages: [],
      close: () => close(session),
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Resolves when the driver answers. */
async function started(ask) {
  const end = Date.now() + START_LIMIT_MS;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

class Page {
  #post;
  #handle;
  constructor(post, handle) {
    this.#post = post;
    this.#handle = handle;
  }

  async navigate(url) {
    await this.#post("/window", { handle: this.#handle });
    await this.#post("/url", { url });
  }

  /** The result of `run(argument)` in the page; both must be JSON. */
  async evaluate(run, argument) {
    await this.#post("/window", { handle: this.#handle });
    const script = `const done = arguments[arguments.length - 1];
      Promise.resolve().then(() => (${run})(${JSON.stringify(argument) ?? ""})).then(
        (value) => done({ value: JSON.stringify(value) }),
        (error) => done({ error: String(error) + "\\n" + (error?.stack ?? "") }));`;
    const { value, error } = await this.#post("/execute/async", { script, args: [] });
    if (error !== undefined) throw new Error(error);
    return value === undefined ? undefined : JSON.parse(value);
  }
}
