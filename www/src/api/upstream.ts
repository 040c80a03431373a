//! Hands requests to an OpenAI-compatible server that the app names, where the page's own engine cannot answer or is not
//! supposed to. Off unless it is configured: nothing else of the package sends a prompt anywhere.

import { endpointRoute, isBelowBasePath } from "../exchange/base_paths.js";
import { messageOf } from "../exchange/error_response.js";
import type { EndpointRoute } from "../generated/types.js";
import type { Answering } from "./fetch_door.js";

/**
 * The reason why the own engine cannot answer: the model is still loading; it could not be loaded, or the engine failed; the queue
 * is full.
 */
export type UpstreamReason = "loading" | "failed" | "busy";

/** A request that may be handed over. */
export interface UpstreamRequest {
  url: string;
  headers: Headers;
  /** The body, parsed; `undefined` if it is not JSON. */
  body: unknown;
  /** Undefined before the own engine was asked. */
  reason: UpstreamReason | undefined;
}

/** The server, and which requests it gets. */
export interface UpstreamOptions {
  /** The URL below which it has the same routes, such as `https://llm.example.org/v1`. A query string in it is sent along. */
  baseURL: string | URL;
  /** Headers of the requests to it, such as its `Authorization`. Those of the caller are not passed on. */
  headers?: Record<string, string>;
  /** The model's id there, in place of the request's `model`. */
  model?: string;
  /**
   * The reasons for which completions and answers are requested there; all three if omitted. Or a function that decides for each request,
   * embeddings included: it is called before the own engine is asked, and again with the reason if that cannot answer.
   */
  when?:
    | readonly UpstreamReason[]
    | ((request: UpstreamRequest) => boolean | Promise<boolean>)
    | undefined;
}

/** Names the server in the answers that it gave. */
export const UPSTREAM_HEADER = "x-inpage-upstream";

const REASONS: readonly UpstreamReason[] = ["loading", "failed", "busy"];

/** True if the engine is useful although its model cannot be loaded. */
export function replacesFailedEngine({ when = REASONS }: UpstreamOptions): boolean {
  return typeof when === "function" || when.includes("failed");
}

/**
 * Answers like `own`, but has the server answer requests for text, and for vectors, on the same routes as the options say. `network` sends them.
 *
 * @throws TypeError if an option is wrong
 */
export function answerWithUpstream(
  own: Answering,
  basePaths: readonly string[],
  options: UpstreamOptions,
  network: typeof fetch,
): Answering {
  const base = baseOf(options.baseURL, basePaths);
  const { when = REASONS } = options;
  if (typeof when !== "function") {
    const unknown = when.find((reason) => !REASONS.includes(reason));
    if (unknown !== undefined) {
      throw new TypeError(`upstream.when: "${unknown}" is none of ${REASONS.join(", ")}`);
    }
  }
  return async (request, signal) => {
    const { method, url, headers, body } = request;
    const route = endpointRoute(new URL(url), basePaths);
    const isTheirs = route?.method === method && mayHandOver(route, when);
    // Servers know nothing of attachments.
    if (!isTheirs || request.attachments !== undefined) return own(request, signal);
    const text = new TextDecoder().decode(body);
    const decide = (reason: UpstreamReason | undefined) => {
      if (typeof when !== "function") return reason !== undefined && when.includes(reason);
      return when({ url, headers: new Headers(headers), body: parsed(text), reason });
    };
    const target = new URL(base);
    target.pathname = `${base.pathname.replace(/\/+$/, "")}/${route.path}`;
    const handOver = () => forward(network, target, options, text, signal ?? null);
    if (await decide(undefined)) return handOver();
    const answer = await own(request, signal);
    const reason = await reasonIn(answer);
    if (reason === undefined || !(await decide(reason))) return answer;
    try {
      const theirs = await handOver();
      await answer.body?.cancel();
      return theirs;
    } catch (error) {
      signal?.throwIfAborted();
      console.warn(`inpage: ${messageOf(error)}`);
      return answer;
    }
  };
}

function mayHandOver({ upstream }: EndpointRoute, when: UpstreamOptions["when"]): boolean {
  return upstream === "any" || (upstream === "chosen" && typeof when === "function");
}

/** The URL below which the routes are. */
function baseOf(baseURL: string | URL, basePaths: readonly string[]): URL {
  let url: URL;
  try {
    url = new URL(baseURL, globalThis.document?.baseURI);
  } catch {
    throw new TypeError(`upstream.baseURL: "${baseURL}" is not a URL`);
  }
  // The page's own service worker would send the request back to this engine.
  if (url.origin === globalThis.location?.origin && isBelowBasePath(url, basePaths)) {
    throw new TypeError(
      `upstream.baseURL: ${baseURL} is answered by this engine itself; name another server or path`,
    );
  }
  return url;
}

async function forward(
  network: typeof fetch,
  target: URL,
  { headers, model }: UpstreamOptions,
  text: string,
  signal: AbortSignal | null,
): Promise<Response> {
  // A query string may contain a key, which is not shown.
  const place = `${target.origin}${target.pathname}`;
  const body = parsed(text);
  const renamed = model !== undefined && typeof body === "object" && body !== null;
  const response = await network(target, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: renamed ? JSON.stringify({ ...body, model }) : text,
    signal,
  }).catch((error) => {
    signal?.throwIfAborted();
    throw new TypeError(
      `the upstream server did not answer at ${place}: ${messageOf(error)} (is it running, and does it allow this origin by CORS?)`,
    );
  });
  const received = new Headers(response.headers);
  // `fetch` has decoded the body.
  received.delete("content-encoding");
  received.delete("content-length");
  received.set(UPSTREAM_HEADER, place);
  const { status, statusText } = response;
  return new Response(response.body, { status, statusText, headers: received });
}

/** The reason why the own engine refused a request; `undefined` if it answered, with an error of the request or without. */
async function reasonIn(answer: Response): Promise<UpstreamReason | undefined> {
  if (answer.status === 429) return "busy";
  if (answer.status !== 503 && answer.status !== 500) return undefined;
  const body = parsed(await answer.clone().text()) as { error?: { code?: unknown } } | undefined;
  const code = body?.error?.code;
  if (code === "model_loading") return "loading";
  const failed = answer.status === 503 || code === "device_lost" || code === "out_of_memory";
  return failed ? "failed" : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
