//! The few types of worker scopes that are used here: TypeScript's DOM and worker libraries cannot be combined.

/** Synchronous access to a file, which only dedicated workers have. */
export interface SyncAccessHandle {
  write(buffer: Uint8Array<ArrayBuffer>, options: { at: number }): number;
  read(buffer: Uint8Array<ArrayBuffer>, options: { at: number }): number;
  truncate(newSize: number): void;
  getSize(): number;
  flush(): void;
  close(): void;
}

export type SyncAccessFile = FileSystemFileHandle & {
  createSyncAccessHandle(): Promise<SyncAccessHandle>;
};

/** The members of the engine worker's global scope that are used. */
export interface WorkerScope extends EventTarget {
  /** The URL of the worker; only in a browser. */
  readonly location?: { readonly href: string };
  postMessage(message: unknown, transfer?: Transferable[]): void;
}

export interface ServiceWorkerScope extends EventTarget {
  readonly location: { readonly origin: string; readonly href: string };
  readonly clients: Clients;
  readonly registration: { readonly scope: string };
  skipWaiting(): Promise<void>;
}

export interface Clients {
  get(id: string): Promise<Client | undefined>;
  matchAll(options: { type: "window"; includeUncontrolled: boolean }): Promise<readonly Client[]>;
  claim(): Promise<void>;
}

export interface Client {
  readonly id: string;
  postMessage(message: unknown, transfer?: Transferable[]): void;
}

export interface ExtendableEvent extends Event {
  waitUntil(promise: Promise<unknown>): void;
}

export interface FetchEvent extends ExtendableEvent {
  readonly request: Request;
  readonly clientId: string;
  /** The client that a page's or worker's request starts; empty for other requests. */
  readonly resultingClientId: string;
  respondWith(response: Promise<Response>): void;
}

export interface ExtendableMessageEvent extends ExtendableEvent {
  readonly data: unknown;
  readonly ports: readonly MessagePort[];
  /** The page that sent it; a worker or a service worker may send messages, too. */
  readonly source: Client | null;
}
