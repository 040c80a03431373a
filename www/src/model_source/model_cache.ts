//! Caches downloads in the origin private file system (OPFS): a file and a note per URL. The note has the
//! version and how much of it is stored, or that the server has no such file. Makes no requests.

import type { SyncAccessFile, SyncAccessHandle } from "../worker_scopes.js";
import type { FileVersion } from "./http.js";

/** The note beside a cached file. */
export interface CacheNote extends FileVersion {
  url: string;
  /** Bytes from the start that are safely stored. */
  storedBytes: number;
  complete: boolean;
}

/** The note of a URL that the server answered with 404. */
interface AbsenceNote {
  url: string;
  absent: true;
}

const FOLDER = "inpage-models";

/** The cache entry of one URL. */
export class CacheEntry {
  private constructor(
    private readonly folder: FileSystemDirectoryHandle,
    private readonly name: string,
    private readonly url: string,
  ) {}

  /** `undefined` where OPFS is not available (private windows, old browsers). */
  static async open(url: string): Promise<CacheEntry | undefined> {
    try {
      const root = await navigator.storage.getDirectory();
      const folder = await root.getDirectoryHandle(FOLDER, { create: true });
      const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(url));
      const name = Array.from(new Uint8Array(digest).slice(0, 16), (byte) =>
        byte.toString(16).padStart(2, "0"),
      ).join("");
      return new CacheEntry(folder, name, url);
    } catch {
      return undefined;
    }
  }

  /** `undefined` if nothing usable is stored. */
  async note(): Promise<CacheNote | undefined> {
    try {
      const note = await this.read();
      if (note === undefined || "absent" in note) return undefined;
      const file = await this.file();
      if (!(note.storedBytes <= file.size)) return undefined;
      return { ...note, sizeBytes: note.sizeBytes ?? undefined };
    } catch {
      return undefined;
    }
  }

  /** True if the server had no such file at the last request. */
  async isAbsent(): Promise<boolean> {
    const note = await this.read().catch(() => undefined);
    return note !== undefined && "absent" in note;
  }

  /** Records that the server has no such file; failures of the storage are ignored. */
  async noteAbsence(): Promise<void> {
    try {
      const options = { create: true };
      const handle = await this.folder.getFileHandle(`${this.name}.json`, options);
      const access = await (handle as SyncAccessFile).createSyncAccessHandle();
      try {
        writeNote(access, { url: this.url, absent: true });
      } finally {
        access.close();
      }
    } catch {
      // The next visit sends the request again.
    }
  }

  /** @throws the error of the storage or of `JSON.parse` */
  private async read(): Promise<CacheNote | AbsenceNote | undefined> {
    const handle = await this.folder.getFileHandle(`${this.name}.json`);
    const note = JSON.parse(await (await handle.getFile()).text()) as CacheNote | AbsenceNote;
    return note.url === this.url ? note : undefined;
  }

  /** The stored bytes; any number of tabs may read them. */
  async file(): Promise<File> {
    return (await this.folder.getFileHandle(`${this.name}.gguf`)).getFile();
  }

  /** Opens the file to append after `storedBytes`; bytes after those are dropped. */
  async writer(storedBytes: number): Promise<CacheWriter> {
    const options = { create: true };
    const data = (await this.folder.getFileHandle(`${this.name}.gguf`, options)) as SyncAccessFile;
    const note = (await this.folder.getFileHandle(`${this.name}.json`, options)) as SyncAccessFile;
    const dataAccess = await data.createSyncAccessHandle();
    try {
      dataAccess.truncate(storedBytes);
      return new CacheWriter(dataAccess, await note.createSyncAccessHandle(), storedBytes);
    } catch (error) {
      dataAccess.close();
      throw error;
    }
  }

  async remove(): Promise<void> {
    for (const name of [`${this.name}.json`, `${this.name}.gguf`]) {
      await this.folder.removeEntry(name).catch(() => {});
    }
  }
}

/** Appends to a cached file and reads it back. The note never claims more than was flushed. */
export class CacheWriter {
  constructor(
    private readonly data: SyncAccessHandle,
    private readonly noteFile: SyncAccessHandle,
    /** Bytes written so far, flushed or not. */
    public writtenBytes: number,
  ) {}

  /** @throws DOMException named `QuotaExceededError` when the storage is full */
  append(bytes: Uint8Array<ArrayBuffer>): void {
    if (this.data.write(bytes, { at: this.writtenBytes }) !== bytes.length) {
      throw new DOMException("the origin's storage is full", "QuotaExceededError");
    }
    this.writtenBytes += bytes.length;
  }

  /** Reads bytes that were written, flushed or not. */
  read(offset: number, length: number): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(length);
    if (this.data.read(bytes, { at: offset }) !== length) {
      throw new DOMException("the origin's storage lost what was written", "InvalidStateError");
    }
    return bytes;
  }

  /** Flushes what was written and updates the note. */
  commit(url: string, version: FileVersion, complete: boolean): void {
    this.data.flush();
    const { etag, lastModified, sizeBytes } = version;
    const note: CacheNote = {
      url,
      etag,
      lastModified,
      sizeBytes,
      storedBytes: this.writtenBytes,
      complete,
    };
    writeNote(this.noteFile, note);
  }

  close(): void {
    this.data.close();
    this.noteFile.close();
  }
}

function writeNote(file: SyncAccessHandle, note: CacheNote | AbsenceNote): void {
  file.truncate(0);
  file.write(new TextEncoder().encode(JSON.stringify(note)), { at: 0 });
  file.flush();
}
