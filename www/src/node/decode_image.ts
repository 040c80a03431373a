//! Decodes files of images with the package sharp, which the app installs. It runs on the program's main thread: libraries that
//! a thread has loaded may be unloaded with it.

import { messageOf } from "../exchange/error_response.js";
import type { DecodedImage } from "../platform.js";

/** The maximum number of pixels; the header was checked before. */
const MAX_PIXELS = 64 << 20;

/**
 * The first frame, turned as Exif says, in the colors of the file: without conversion to another color space.
 *
 * @throws Error with the code `unsupported_parameter` if sharp is not installed
 */
export async function decodeImage(file: Uint8Array): Promise<DecodedImage> {
  const { default: sharp } = await loadSharp();
  const image = sharp(file, {
    ...{ autoOrient: true, failOn: "error", ignoreIcc: true, limitInputPixels: MAX_PIXELS },
  });
  const { depth } = await image.metadata();
  const isDeep = depth === "ushort";
  const { data, info } = await image
    .toColourspace(isDeep ? "rgb16" : "srgb")
    .raw({ depth: isDeep ? "ushort" : "uchar" })
    .toBuffer({ resolveWithObject: true });
  const { width, height, channels } = info;
  if (channels !== 3 && channels !== 4) throw new Error(`it has ${channels} channels`);
  return { width, height, channels, data: isDeep ? in8Bits(data) : new Uint8Array(data) };
}

/** Rounded, as browsers do it. */
function in8Bits(data: Buffer): Uint8Array {
  const words = new Uint16Array(data.buffer, data.byteOffset, data.length / 2);
  return Uint8Array.from(words, (word) => Math.round(word / 257));
}

async function loadSharp(): Promise<typeof import("sharp")> {
  try {
    return await import("sharp");
  } catch (error) {
    const [reason] = messageOf(error).trim().split("\n");
    const message = `outside of a browser images need the package sharp: npm install sharp (${reason})`;
    throw Object.assign(new Error(message), { code: "unsupported_parameter" });
  }
}
