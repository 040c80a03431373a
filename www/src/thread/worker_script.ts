//! Starts the engine worker's script, also one of another origin such as a CDN's: browsers take the script of a worker from
//! the page's own origin only, so a module of the page imports it.

import { startPackagedWorker } from "../package_files.js";
import { trustedScriptUrl } from "../site/trusted_script.js";

/** The URLs of modules that import a script, by script. They live as long as the page, because a worker starts its threads from its own URL. */
const importing = new Map<string, string>();

/** @param scriptUrl the script, if the app gave one; otherwise the package's */
export function startWorkerScript(scriptUrl: string | URL | undefined): Worker {
  // Not every browser throws for a script of another origin, so its origin is compared beforehand.
  const url = absolute(scriptUrl ?? packagedScript());
  const script = url === undefined || !isForeign(url) ? scriptUrl : moduleThatImports(url);
  try {
    return start(script);
  } catch (error) {
    // Not only where Trusted Types are required: some browsers throw where others have an error event.
    if (!(error instanceof TypeError) || !("trustedTypes" in globalThis)) throw error;
    return startTrusted(script);
  }
}

/** Starts the script in a page that requires Trusted Types. */
function startTrusted(script: string | URL | undefined): Worker {
  const trusting = new Proxy(globalThis.Worker, {
    construct: (native, [url, options]) => new native(trustedScriptUrl(`${url}`), options),
  });
  return withConstructor(trusting, () => start(script));
}

/**
 * The likely reason why the script could not be started, and what to do.
 *
 * @param reason what the browser says, if it says anything
 */
export function scriptFailure(scriptUrl: string | URL | undefined, reason: string): string {
  const url = absolute(scriptUrl ?? packagedScript());
  const said = reason && ` (${reason})`;
  const causes = [
    ...(globalThis.origin === "null"
      ? ["a sandboxed frame needs allow-same-origin, or must get the script with CORS"]
      : []),
    ...(/trusted ?(types|script)/i.test(reason)
      ? ["a page that requires Trusted Types must allow the policy inpage (trusted-types inpage)"]
      : []),
    "the file is not there, or is sent as another type than JavaScript: where a bundler does not follow new URL(..., import.meta.url), host worker.js and give its address as workerUrl",
    "the Content-Security-Policy of the page does not allow it: see worker-src and script-src",
  ];
  return `the engine worker's script ${url?.href ?? scriptUrl} could not be started${said}. Likely causes: ${causes.join("; ")}`;
}

function start(scriptUrl: string | URL | undefined): Worker {
  return scriptUrl === undefined
    ? startPackagedWorker()
    : new Worker(scriptUrl, { type: "module", name: "inpage" });
}

/**
 * The URL of the package's script. Only a bundler knows where it puts the script, and it says so only in the expression of
 * `startPackagedWorker`: what that gives to the constructor of workers is recorded. A bundler that reads the URL anywhere else
 * makes a second copy of the script, which does not find the wasm modules.
 */
function packagedScript(): string | URL | undefined {
  let given: string | URL | undefined;
  class Recorder {
    constructor(url: string | URL) {
      given = url;
    }
  }
  try {
    withConstructor(Recorder, () => start(undefined));
  } catch {
    // The program does not let its globals be changed.
  }
  return given;
}

/** Runs `run`, in which `worker` is the constructor of workers. */
function withConstructor(worker: unknown, run: () => Worker): Worker {
  const { Worker } = globalThis;
  try {
    // Nothing else runs until it is put back.
    globalThis.Worker = worker as typeof Worker;
    return run();
  } finally {
    if (globalThis.Worker !== Worker) globalThis.Worker = Worker;
  }
}

/** `undefined` if it is no URL, which the browser reports. */
function absolute(url: string | URL | undefined): URL | undefined {
  const base = globalThis.document?.baseURI ?? globalThis.location?.href;
  try {
    return url === undefined ? undefined : new URL(url, base);
  } catch {
    return undefined;
  }
}

const isForeign = ({ protocol, origin }: URL) =>
  /^https?:$/.test(protocol) && origin !== globalThis.origin;

/** The URL of a module of this origin that runs the script. */
function moduleThatImports({ href }: URL): string {
  let url = importing.get(href);
  if (url === undefined) {
    // In an isolated page, WebKit refuses a static import of another origin here. An error is thrown again so that the page gets it.
    const code = `import(${JSON.stringify(href)}).catch((error) => setTimeout(() => { throw error; }));`;
    url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
    importing.set(href, url);
  }
  return url;
}
