//! The page's service worker: the engine answers plain `fetch("/v1/completions")`, and the page works offline. Both are
//! optional: the page works without them.

import { serveFromPage } from "../dist/index.js";
import { errorInWords } from "./page/words.js";

/** @import { Engine, ServeOptions, Serving } from "../dist/index.js" */

/** The demo's service worker, which answers requests and isolates a frame for the CPU's threads. @type {ServeOptions} */
export const SERVICE_WORKER = {
  serviceWorkerUrl: new URL("./sw.js", import.meta.url),
  type: "module",
};

/** @type {Serving | undefined} */
let serving;

/**
 * Serves from `engine` instead of the previous one, then caches the page.
 *
 * @param {Engine} engine
 * @param {(text: string) => void} say
 */
export async function serve(engine, say) {
  await serving?.stop();
  const attempt = serveFromPage(engine, SERVICE_WORKER);
  serving = attempt;
  try {
    await attempt.ready;
  } catch (error) {
    // The error is ignored if another engine has replaced this one.
    if (serving === attempt) say(errorInWords(error));
    return;
  }
  const served = 'This tab answers fetch("/v1/completions").';
  say(served);
  const kept = await keepForOffline();
  say(
    `${served} ${kept ? "The page now works offline." : "The page could not be saved for offline use."}`,
  );
}

/** @returns {Promise<boolean>} whether the page is cached */
function keepForOffline() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = ({ data }) => {
      port1.close();
      resolve(data === true);
    };
    navigator.serviceWorker.controller?.postMessage("demo:keep", [port2]);
  });
}
