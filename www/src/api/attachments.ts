//! Images in the bodies of JavaScript calls: each is replaced by a URL, and travels beside the body. What is in a file
//! is checked in Rust.
//!
//! Images are copied, so that the request can be run again on another engine.

import type { Attachment } from "../exchange/protocol.js";
import { InpageError } from "./inpage_error.js";
import { type PixelSource, isPixelSource, pixelsOf } from "./pixels.js";

/**
 * An image: a `data:` URL, a file, or pixels. A file keeps its orientation; of an animated one, the first frame is
 * taken. Pixels are put on white.
 */
export type ImageInput = string | Blob | PixelSource;

type ImageObject = Exclude<ImageInput, string>;

/** The member of `fetch` options that holds the images of a body. */
const ATTACHMENTS = Symbol("attachments");

/** The URL of an image in a body that is sent. */
const ATTACHED = /^attachment:([0-9]+)$/;

export type InitWithAttachments = RequestInit & { [ATTACHMENTS]?: readonly Attachment[] };

/** Options of `engine.fetch` with the images of the body. */
export function withAttachments(
  init: RequestInit,
  attachments: readonly Attachment[],
): RequestInit {
  return attachments.length === 0 ? init : ({ ...init, [ATTACHMENTS]: attachments } as RequestInit);
}

/** The images that `withAttachments` has added. */
export function attachmentsOf(init: RequestInit | undefined): readonly Attachment[] | undefined {
  return (init as InitWithAttachments | undefined)?.[ATTACHMENTS];
}

/**
 * The body with URLs in place of images, and the images. Only `images`, the `image_url` of parts and the `source.url` of
 * blocks are searched.
 *
 * @throws InpageError `invalid_value` if the pixels of an image cannot be read
 */
export async function detachImages(
  given: object,
): Promise<{ body: Record<string, unknown>; attachments: Attachment[] }> {
  const { detached, found } = replaceImages(given);
  const attachments = found.map(({ image, field }) => attachmentOf(image, field));
  return { body: detached, attachments: await Promise.all(attachments) };
}

/** Finds the image of a body by its URL in the body that is sent. Other URLs are images themselves. */
export function imagesByUrl(given: object): (url: string) => ImageInput {
  const { found } = replaceImages(given);
  return (url) => found[Number(ATTACHED.exec(url)?.[1])]?.image ?? url;
}

interface FoundImage {
  image: ImageObject;
  field: string;
}

function replaceImages(given: object): { detached: Record<string, unknown>; found: FoundImage[] } {
  const found: FoundImage[] = [];
  const urlOf = (value: unknown, field: string): unknown => {
    if (!isImage(value)) return value;
    found.push({ image: value, field });
    return `attachment:${found.length - 1}`;
  };
  const body = given as Record<string, unknown>;
  const detached = { ...body };
  const { images } = body;
  if (Array.isArray(images)) {
    detached.images = images.map((it) =>
      Array.isArray(it) ? it.map((inner) => urlOf(inner, "images")) : urlOf(it, "images"),
    );
  }
  for (const field of ["messages", "input"]) {
    const list = body[field];
    if (Array.isArray(list)) detached[field] = list.map((item) => inItem(item, field, urlOf));
  }
  return { detached, found };
}

type Replace = (value: unknown, field: string) => unknown;

/** A message, or an output of a tool, with the images of its parts replaced. */
function inItem(item: unknown, field: string, urlOf: Replace): unknown {
  if (!isObject(item)) return item;
  const replaced = { ...item };
  for (const member of ["content", "output"]) {
    const parts = item[member];
    if (!Array.isArray(parts)) continue;
    replaced[member] = parts.map((part) => inPart(part, field, urlOf));
  }
  return replaced;
}

function inPart(part: unknown, field: string, urlOf: Replace): unknown {
  if (!isObject(part)) return part;
  const { source, type } = part;
  if (type === "image" && isObject(source) && "url" in source) {
    return { ...part, source: { ...source, url: urlOf(source.url, field) } };
  }
  // A result in Anthropic's form has blocks of its own.
  if (type === "tool_result") return inItem(part, field, urlOf);
  if (!("image_url" in part)) return part;
  const { image_url: given } = part;
  const isWrapped = isObject(given) && !isImage(given);
  const url = isWrapped ? { ...given, url: urlOf(given.url, field) } : urlOf(given, field);
  return { ...part, image_url: url };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

const isImage = (value: unknown): value is ImageObject =>
  value instanceof Blob || isPixelSource(value);

async function attachmentOf(image: ImageObject, field: string): Promise<Attachment> {
  try {
    if (image instanceof Blob) return { file: new Uint8Array(await image.arrayBuffer()) };
    return await pixelsOf(image);
  } catch (error) {
    throw new InpageError(400, {
      message: `${field}: the pixels of an image cannot be read: ${(error as Error).message}`,
      type: "invalid_request_error",
      param: field,
      code: "invalid_value",
    });
  }
}
