//! The page's own service worker: plain `fetch("/v1/completions")` is answered by the engine, and
//! the page opens without a network. Both are extras: the page works without.

import { serveFromPage } from "../dist/index.js";
import { errorInWords } from "./words.js";

/** @import { Engine, Serving } from "../dist/index.js" */

/** @type {Serving | undefined} */
let serving;

/**
 * Serves from `engine` instead of the one before, then sees that the page is kept.
 *
 * @param {Engine} engine
 * @param {(text: string) => void} say
 */
export async function serve(engine, say) {
  await serving?.stop();
  const attempt = serveFromPage(engine, {
    serviceWorkerUrl: new URL("./sw.js", import.meta.url),
    type: "module",
  });
  serving = attempt;
  try {
    await attempt.ready;
  } catch (error) {
    // Unless another engine took over.
    if (serving === attempt) say(errorInWords(error));
    return;
  }
  const served = 'fetch("/v1/completions") is answered by this tab.';
  say(served);
  const kept = await keepForOffline();
  say(
    `${served} ${kept ? "The page works offline from now on." : "The page could not be kept for offline use."}`,
  );
}

/** @returns {Promise<boolean>} whether the page is kept */
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
