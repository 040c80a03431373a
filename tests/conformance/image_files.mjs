//! Files of images, made here. Runs in Node and in pages.

const WIDTH = 23;
const HEIGHT = 17;

/** Red, green and blue of WIDTH times HEIGHT pixels. */
export function noise(seed) {
  let state = seed;
  return Uint8Array.from({ length: 3 * WIDTH * HEIGHT }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state >>> 24;
  });
}

const bigEndian = (value) => [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255];
const littleEndian = (value) => bigEndian(value).reverse();
const ascii = (text) => [...text].map((character) => character.charCodeAt(0));

function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

function adler32(bytes) {
  let [a, b] = [1, 0];
  for (const byte of bytes) {
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  return ((b << 16) | a) >>> 0;
}

const chunk = (name, data) => {
  const named = [...ascii(name), ...data];
  return [...bigEndian(data.length), ...named, ...bigEndian(crc32(named))];
};

/** A PNG file of these pixels, not compressed. */
export function png(rgb) {
  const rows = [];
  for (let y = 0; y < HEIGHT; y++)
    rows.push(0, ...rgb.subarray(3 * WIDTH * y, 3 * WIDTH * (y + 1)));
  const size = [rows.length & 255, rows.length >> 8];
  const stored = [1, ...size, ...size.map((byte) => ~byte & 255), ...rows];
  const data = [0x78, 0x01, ...stored, ...bigEndian(adler32(rows))];
  return Uint8Array.from([
    ...[0x89, ...ascii("PNG"), 13, 10, 26, 10],
    ...chunk("IHDR", [...bigEndian(WIDTH), ...bigEndian(HEIGHT), 8, 2, 0, 0, 0]),
    ...chunk("IDAT", data),
    ...chunk("IEND", []),
  ]);
}

/** A BMP file of these pixels. */
export function bmp(rgb) {
  const row = (y) => {
    const pixels = [];
    for (let x = 0; x < WIDTH; x++) {
      const [red, green, blue] = rgb.subarray(3 * (WIDTH * y + x));
      pixels.push(blue, green, red);
    }
    while (pixels.length % 4) pixels.push(0);
    return pixels;
  };
  const rows = Array.from({ length: HEIGHT }, (_, y) => row(HEIGHT - 1 - y)).flat();
  const header = [40, WIDTH, HEIGHT].flatMap(littleEndian);
  const rest = [0, rows.length, 2835, 2835, 0, 0].flatMap(littleEndian);
  return Uint8Array.from([
    ...ascii("BM"),
    ...[54 + rows.length, 0, 54].flatMap(littleEndian),
    ...[...header, 1, 0, 24, 0, ...rest],
    ...rows,
  ]);
}

/** The data URL of a file. */
export function dataUrl(file, type) {
  return `data:image/${type};base64,${btoa(String.fromCharCode(...file))}`;
}
