//! Keeps what an engine found out about the kernels of the GPU, beside the model's file in the cache: a note that says
//! for which browser it is true. A note that is damaged, old or of another browser is as good as none. What is in the
//! text, and whether the device, the build and the model are those that it is about, is decided in Rust.
//!
//! The file has the SHA-256 of the note in hexadecimal digits, a line feed, and the note as JSON.

import { KERNELS_FILE, cacheFolder, entryName, fileOf, hexOf } from "./cache_layout.js";
import { type Folder, openForWriting } from "./file_system.js";
import { sha256 } from "./hash.js";
import { writeAll } from "./version_writer.js";

/** Drivers change without a sign that a page can see: after this time the kernels are tested again. */
const VALID_MS = 30 * 24 * 60 * 60 * 1000;

/** A SHA-256 in hexadecimal digits. */
const HASH_DIGITS = 64;

interface KernelNote {
  /** The browser and its version. */
  browser: string;
  /** The time when the kernels were tested, in milliseconds since 1970. */
  testedAtMs: number;
  /** The results of the engine. Only Rust reads them. */
  kernels: string;
}

/** The note that was kept beside the file with this cache key; undefined if that is nothing that this browser can use. */
export async function readKernels(key: string, nowMs: number): Promise<string | undefined> {
  try {
    const folder = await existingFolder(key);
    if (folder === undefined) return undefined;
    const text = await (await fileOf(folder, KERNELS_FILE)).text();
    const note = text.slice(HASH_DIGITS + 1);
    if (text !== (await withHash(note))) return undefined;
    const { browser, testedAtMs, kernels } = JSON.parse(note) as KernelNote;
    const ageMs = nowMs - testedAtMs;
    if (browser !== (await browserVersion()) || !(ageMs >= 0 && ageMs < VALID_MS)) return undefined;
    return kernels;
  } catch {
    return undefined;
  }
}

/** Keeps what an engine found out; nothing is kept if the file itself is not, or the storage fails. */
export async function writeKernels(key: string, kernels: string, nowMs: number): Promise<void> {
  try {
    const folder = await existingFolder(key);
    if (folder === undefined) return;
    const note: KernelNote = { browser: await browserVersion(), testedAtMs: nowMs, kernels };
    const bytes = new TextEncoder().encode(await withHash(JSON.stringify(note)));
    const file = await folder.getFileHandle(KERNELS_FILE, { create: true });
    const handle = await openForWriting(file);
    try {
      await writeAll(handle, bytes, 0);
      await handle.truncate(bytes.length);
      await handle.flush();
    } finally {
      await handle.close();
    }
  } catch {
    // The next visit tests the kernels again. Another tab may be writing the same.
  }
}

export async function removeKernels(key: string): Promise<void> {
  const folder = await existingFolder(key).catch(() => undefined);
  await folder?.removeEntry(KERNELS_FILE).catch(() => {});
}

/** The entry of the file, which a download creates. */
async function existingFolder(key: string): Promise<Folder | undefined> {
  const folder = await cacheFolder();
  return folder?.getDirectoryHandle(await entryName(key));
}

async function withHash(note: string): Promise<string> {
  return `${hexOf(await sha256(new TextEncoder().encode(note)))}\n${note}`;
}

/** `navigator.userAgent` leaves out the parts of the version that change with every update. */
interface UserAgentData {
  getHighEntropyValues(hints: string[]): Promise<unknown>;
}

async function browserVersion(): Promise<string> {
  const { userAgent, userAgentData } = navigator as Navigator & { userAgentData?: UserAgentData };
  const hints = ["fullVersionList", "platformVersion", "architecture"];
  return JSON.stringify([userAgent, await userAgentData?.getHighEntropyValues(hints)]);
}
