//! Starts the engine worker's script, also one of another origin such as a CDN's: browsers take the script of a worker from
//! the page's own origin only, so a module of the page imports it.

import { startPackagedWorker } from "../package_files.js";

/** By script: the URLs of modules that import it. They live as long as the page, because a worker starts its threads from its own URL. */
const importing = new Map<string, string>();

/** @param scriptUrl the script, if the app gave one; otherwise the package's */
export function startWorkerScript(scriptUrl: string | URL | undefined): Worker {
  // Not every browser throws for a script of another origin, so its origin is compared beforehand.
  const url = absolute(scriptUrl ?? packagedScript());
  if (url === undefined || !isForeign(url)) return start(scriptUrl);
  return start(moduleThatImports(url));
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
  const { Worker } = globalThis;
  let given: string | URL | undefined;
  class Recorder {
    constructor(url: string | URL) {
      given = url;
    }
  }
  try {
    // Nothing else runs until it is put back.
    globalThis.Worker = Recorder as unknown as typeof Worker;
    start(undefined);
  } catch {
    // The program does not let its globals be changed.
  } finally {
    if (globalThis.Worker !== Worker) globalThis.Worker = Worker;
  }
  return given;
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
    // In an isolated page, WebKit refuses a static import of another origin here. An error is thrown again so that the page is told.
    const code = `import(${JSON.stringify(href)}).catch((error) => setTimeout(() => { throw error; }));`;
    url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
    importing.set(href, url);
  }
  return url;
}
