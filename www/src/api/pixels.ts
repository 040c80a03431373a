//! Images that a page holds as objects: which ones there are, and their pixels.

import type { Attachment } from "../exchange/protocol.js";

/** An object that shows an image. A video stands for its current frame. */
export type PixelSource =
  | ImageBitmap
  | ImageData
  | HTMLImageElement
  | SVGImageElement
  | HTMLVideoElement
  | HTMLCanvasElement
  | OffscreenCanvas
  | VideoFrame;

/** Some of the classes exist only in browsers. */
const CLASSES = [
  ...["ImageBitmap", "ImageData", "HTMLImageElement", "SVGImageElement", "HTMLVideoElement"],
  ...["HTMLCanvasElement", "OffscreenCanvas", "VideoFrame"],
];

export function isPixelSource(value: unknown): value is PixelSource {
  const known = globalThis as unknown as Record<string, new () => unknown>;
  return CLASSES.some((name) => known[name] !== undefined && value instanceof known[name]);
}

/**
 * The pixels of an image on white. A canvas is read at once.
 *
 * @throws DOMException or TypeError if they cannot be read; `SecurityError` for an image of another site without its consent
 */
export async function pixelsOf(
  image: PixelSource,
): Promise<Extract<Attachment, { rgba: Uint8Array }>> {
  const drawn = isMeasured(image) ? image : await createImageBitmap(image);
  // An element that is not loaded has no size yet.
  if ("decode" in drawn) await drawn.decode();
  const width = "naturalWidth" in drawn ? drawn.naturalWidth : drawn.width;
  const height = "naturalHeight" in drawn ? drawn.naturalHeight : drawn.height;
  if (!(width > 0 && height > 0)) {
    throw new DOMException(`it is ${width}x${height} pixels`, "InvalidStateError");
  }
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d");
  if (context === null) throw new TypeError("there is no 2D canvas");
  if ("data" in drawn) context.putImageData(drawn, 0, 0);
  else context.drawImage(drawn, 0, 0, width, height);
  context.globalCompositeOperation = "destination-over";
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  const { data } = context.getImageData(0, 0, width, height);
  return { width, rgba: new Uint8Array(data.buffer) };
}

/** Whether its size in pixels is in its `width` or `naturalWidth`. */
function isMeasured(
  image: PixelSource,
): image is Exclude<PixelSource, SVGImageElement | HTMLVideoElement | VideoFrame> {
  const { SVGImageElement, HTMLVideoElement, VideoFrame } = globalThis;
  return ![SVGImageElement, HTMLVideoElement, VideoFrame].some(
    (known) => known !== undefined && image instanceof known,
  );
}
