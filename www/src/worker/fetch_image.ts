//! Fetches the file of an image that a request names by its URL, under the page's rules. When it may be fetched, how long that may
//! take, and what is in it are decided in Rust.

import { messageOf } from "../exchange/error_response.js";

/**
 * The whole file. Cookies and the page's address are not sent.
 *
 * @throws Error that says why there is no file, without its URL
 */
export async function fetchImage(
  url: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  const response = await request(url, signal);
  if (!response.ok)
    throw await ended(response, `the server answered with status ${response.status}`);
  const tooLarge = `it has more than ${maxBytes} bytes`;
  if (Number(response.headers.get("content-length") ?? 0) > maxBytes) {
    throw await ended(response, tooLarge);
  }
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  const reader = response.body?.getReader();
  for (;;) {
    const { value } = (await reader?.read()) ?? {};
    if (value === undefined) break;
    size += value.length;
    if (size > maxBytes) {
      await reader?.cancel();
      throw new Error(tooLarge);
    }
    parts.push(value);
  }
  const file = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    file.set(part, at);
    at += part.length;
  }
  return file;
}

async function request(url: string, signal: AbortSignal): Promise<Response> {
  try {
    return await fetch(url, {
      ...{ signal, mode: "cors", credentials: "omit", referrerPolicy: "no-referrer" },
      headers: { accept: "image/*" },
    });
  } catch (error) {
    throw new Error(
      `it could not be fetched (${messageOf(error)}): its server must allow this page to read it (CORS: Access-Control-Allow-Origin), and so must connect-src of the page's content security policy`,
    );
  }
}

/** The error, after the rest of the answer was refused. */
async function ended(response: Response, reason: string): Promise<Error> {
  await response.body?.cancel();
  return new Error(reason);
}
