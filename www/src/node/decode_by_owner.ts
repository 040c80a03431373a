//! Asks the owner of the engine's thread to decode images, over the messages between the two: their forms, and the thread's side.

import type { WireFailure } from "../exchange/protocol.js";
import type { DecodedImage } from "../platform.js";

/** A thread asks its owner to decode a file. */
export interface DecodeRequest {
  decode: number;
  file: Uint8Array;
}

/** The answer to the request with this number. */
export interface DecodeReply {
  decoded: number;
  image?: DecodedImage;
  failure?: WireFailure;
}

export const isDecodeRequest = (message: unknown): message is DecodeRequest =>
  typeof message === "object" && message !== null && "decode" in message;

export const isDecodeReply = (message: unknown): message is DecodeReply =>
  typeof message === "object" && message !== null && "decoded" in message;

type Waiting = { resolve(image: DecodedImage): void; reject(error: Error): void };

const waiting = new Map<number, Waiting>();
let count = 0;

/** Decodes a file on the owner's thread. */
export function decodeByOwner(file: Uint8Array): Promise<DecodedImage> {
  return new Promise((resolve, reject) => {
    waiting.set(++count, { resolve, reject });
    const request: DecodeRequest = { decode: count, file };
    (globalThis as unknown as { postMessage(message: unknown): void }).postMessage(request);
  });
}

/** Takes an answer of the owner. */
export function takeReply({ decoded, image, failure }: DecodeReply): void {
  const { resolve, reject } = waiting.get(decoded) ?? {};
  waiting.delete(decoded);
  if (image !== undefined) resolve?.(image);
  else reject?.(Object.assign(new Error(failure?.message), { code: failure?.code }));
}
