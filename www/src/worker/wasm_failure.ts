//! Names the wasm module's URL in the error of a module that could not be started. The errors of browsers do not name it.

import { EngineFailure, messageOf } from "../exchange/error_response.js";

/** The messages of browsers about a `fetch` without an answer. */
const NO_ANSWER = /failed to fetch|networkerror|load failed|fetch failed/i;

/**
 * `error`, thrown while the module at `wasmUrl` (the package's if omitted) was started; another failure than that of its file stays as it is.
 */
export function namingModule(error: unknown, wasmUrl: string | undefined): unknown {
  const isWrongFile = error instanceof WebAssembly.CompileError;
  const isUnreached = error instanceof TypeError && NO_ANSWER.test(error.message);
  if (!isWrongFile && !isUnreached) return error;
  const place = globalThis.location?.href;
  const module =
    wasmUrl ?? `inpage_bg.wasm of the package${place ? ` (for the worker ${place})` : ""}`;
  const causes = isWrongFile
    ? "the server answers with another file, such as a web page for unknown paths, or the bundler has changed it: host wasm/inpage_bg.wasm and give its address as wasmUrl; or the Content-Security-Policy forbids wasm: allow 'wasm-unsafe-eval' in script-src"
    : "the server is not reachable, it does not allow this origin (CORS: Access-Control-Allow-Origin), or the Content-Security-Policy does not allow it (connect-src)";
  const message = `the wasm module ${module} could not be started (${messageOf(error)}). Likely causes: ${causes}`;
  return new EngineFailure("wasm_unavailable", message);
}
