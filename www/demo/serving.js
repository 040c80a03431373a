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
  const options = {
    serviceWorkerUrl: new URL("./sw.js", import.meta.url),
    type: /** @type {const} */ ("module"),
  };
  // The engine worker lies in ../dist: only with it in the scope can that script be kept. A host
  // must allow the wider scope by a header (`Service-Worker-Allowed`); else this folder has to do.
  const scopes = [new URL("../", import.meta.url), new URL("./", import.meta.url)];
  for (const [index, { pathname: scope }] of scopes.entries()) {
    const attempt = serveFromPage(engine, { ...options, scope });
    serving = attempt;
    try {
      await attempt.ready;
      break;
    } catch (error) {
      await attempt.stop();
      // Another engine took over.
      if (serving !== attempt) return;
      if (index < scopes.length - 1 && isNotAllowed(error)) continue;
      say(`No service worker: ${errorInWords(error)}`);
      return;
    }
  }
  say('fetch("/v1/completions") is answered by this tab.');
  const kept = await keepForOffline();
  say(
    `fetch("/v1/completions") is answered by this tab. ${kept ? "The page works offline from now on." : "The page could not be kept for offline use."}`,
  );
}

/** @param {unknown} error */
function isNotAllowed(error) {
  return /** @type {{ code?: string }} */ (error).code === "service_worker_unavailable";
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
