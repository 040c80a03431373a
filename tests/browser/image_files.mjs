//! Files of images for tests, written without a library: the pixels in them are known to the bit.

import { crc32, deflateSync } from "node:zlib";

/** A PNG file. `channels` is 3 or 4, `bits` 8 or 16; `data` has that many bytes per pixel, row by row. */
export function png({ width, height, channels = 3, bits = 8, data }) {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([bits, channels === 4 ? 6 : 2], 8);
  const rowBytes = (width * channels * bits) / 8;
  const rows = Array.from({ length: data.length / rowBytes }, (_, row) => [
    Buffer.of(0),
    data.subarray(row * rowBytes, (row + 1) * rowBytes),
  ]);
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(Buffer.concat(rows.flat()))),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type, data) {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const named = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}

/** A BMP file of 24 bits per pixel. */
export function bmp({ width, height, data }) {
  const rowBytes = Math.ceil((width * 3) / 4) * 4;
  const header = Buffer.alloc(54);
  header.write("BM", 0, "latin1");
  header.writeUInt32LE(54 + rowBytes * height, 2);
  header.writeUInt32LE(54, 10);
  header.writeUInt32LE(40, 14);
  header.writeInt32LE(width, 18);
  header.writeInt32LE(height, 22);
  header.writeUInt16LE(1, 26);
  header.writeUInt16LE(24, 28);
  const rows = Buffer.alloc(rowBytes * height);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const [red, green, blue] = data.subarray((y * width + x) * 3);
      rows.set([blue, green, red], (height - 1 - y) * rowBytes + x * 3);
    }
  }
  return Buffer.concat([header, rows]);
}

/** A GIF file of one or more frames, whose pixels have at most 256 colors together. Its codes are not compressed. */
export function gif({ width, height, frames }) {
  const palette = [];
  const numbers = new Map();
  const numberOf = ([red, green, blue]) => {
    const key = (red << 16) | (green << 8) | blue;
    if (!numbers.has(key)) {
      numbers.set(key, numbers.size);
      palette.push(red, green, blue);
    }
    return numbers.get(key);
  };
  const size = Buffer.alloc(4);
  size.writeUInt16LE(width, 0);
  size.writeUInt16LE(height, 2);
  const images = frames.flatMap((data) => {
    const pixels = Array.from({ length: width * height }, (_, i) =>
      numberOf(data.subarray(3 * i, 3 * i + 3)),
    );
    const delay = Buffer.of(0x21, 0xf9, 4, 0, 10, 0, 0, 0);
    const place = Buffer.concat([Buffer.of(0x2c, 0, 0, 0, 0), size, Buffer.of(0, 8)]);
    return [delay, place, ...blocks(codes(pixels))];
  });
  const colors = Buffer.alloc(768);
  colors.set(palette);
  return Buffer.concat([
    Buffer.from("GIF89a", "latin1"),
    size,
    Buffer.of(0xf7, 0, 0),
    colors,
    ...images,
    Buffer.of(0x3b),
  ]);
}

/** Nine bits per pixel: a clear code after every 250 pixels keeps the width of the codes. */
function codes(pixels) {
  const [CLEAR, END] = [256, 257];
  const list = pixels.flatMap((pixel, i) => (i % 250 === 0 ? [CLEAR, pixel] : [pixel]));
  const bytes = [];
  let [held, bits] = [0, 0];
  for (const code of [...list, END]) {
    held |= code << bits;
    bits += 9;
    for (; bits >= 8; bits -= 8, held >>= 8) bytes.push(held & 255);
  }
  bytes.push(held & 255);
  return Buffer.from(bytes);
}

function blocks(bytes) {
  const parts = [];
  for (let at = 0; at < bytes.length; at += 255) {
    const part = bytes.subarray(at, at + 255);
    parts.push(Buffer.of(part.length), part);
  }
  return [...parts, Buffer.of(0)];
}

/** A JPEG file with an Exif segment that says how it is turned: 6 means to the right by 90 degrees. */
export function oriented(jpeg, orientation) {
  const tiff = Buffer.alloc(26);
  tiff.write("II", 0, "latin1");
  tiff.writeUInt16LE(42, 2);
  tiff.writeUInt32LE(8, 4);
  tiff.writeUInt16LE(1, 8);
  tiff.writeUInt16LE(0x0112, 10);
  tiff.writeUInt16LE(3, 12);
  tiff.writeUInt32LE(1, 14);
  tiff.writeUInt16LE(orientation, 18);
  const exif = Buffer.concat([Buffer.from("Exif\0\0", "latin1"), tiff]);
  const head = Buffer.of(0xff, 0xe1, 0, exif.length + 2);
  return Buffer.concat([jpeg.subarray(0, 2), head, exif, jpeg.subarray(2)]);
}

/** A JPEG file of 16x16 pixels with four inks, as programs for print write them. */
export const CMYK_JPEG = Buffer.from(
  "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwANCQoLCggNCwoLDg4NDxMgFRMSEhMnHB4XIC4pMTAuKS0sMzpKPjM2RjcsLUBXQUZMTlJTUjI+WmFaUGBKUVJP" +
    "/8AAFAgAEAAQBEMRAE0RAFkRAEsRAP/EABYAAQEBAAAAAAAAAAAAAAAAAAAHBv/EABgQAQADAQAAAAAAAAAAAAAAAAAGFUJi/9oADgRDAE0AWQBLAAA/" +
    "AMnH8snRcCnKdH8lFwCYx/KnUXAKdH8lFwD/2Q==",
  "base64",
);
