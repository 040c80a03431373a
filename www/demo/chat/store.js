//! Keeps conversations in the browser's storage (IndexedDB). Errors of the storage reach the caller, which shows them.

import { restored } from "./conversation.js";

/** @import { Conversation } from "./conversation.js" */

const DATABASE = "inpage-demo-chat";
const STORE = "conversations";

/**
 * @typedef {object} Store
 * @property {() => Promise<Conversation[]>} list the latest first
 * @property {(conversation: Conversation) => Promise<void>} put
 * @property {(id: string) => Promise<void>} remove
 */

/**
 * @returns {Promise<Store>}
 * @throws DOMException if the browser gives this page no storage
 */
export async function openStore() {
  const opening = indexedDB.open(DATABASE, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(STORE, { keyPath: "id" });
  const database = await outcome(opening);
  // Another tab may have a newer version of the page.
  database.onversionchange = () => database.close();
  return {
    async list() {
      const all = await outcome(database.transaction(STORE).objectStore(STORE).getAll());
      const known = all.map(restored).filter((conversation) => conversation !== undefined);
      return known.sort((a, b) => b.updatedMs - a.updatedMs);
    },
    put: (conversation) => write(database, (store) => store.put(conversation)),
    remove: (id) => write(database, (store) => store.delete(id)),
  };
}

/** @returns {Store} a store that lasts as long as the page, for browsers that give it no storage */
export function temporaryStore() {
  /** @type {Map<string, Conversation>} */
  const kept = new Map();
  return {
    list: async () => [...kept.values()].sort((a, b) => b.updatedMs - a.updatedMs),
    put: async (conversation) => void kept.set(conversation.id, structuredClone(conversation)),
    remove: async (id) => void kept.delete(id),
  };
}

/**
 * @template T
 * @param {IDBRequest<T>} request
 * @returns {Promise<T>}
 */
function outcome(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/**
 * A full storage shows only when the transaction ends.
 *
 * @param {IDBDatabase} database
 * @param {(store: IDBObjectStore) => void} change
 * @returns {Promise<void>}
 */
function write(database, change) {
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(STORE, "readwrite");
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new Error("the storage refused it"));
    change(transaction.objectStore(STORE));
    // Otherwise it would wait for the page, which may be about to end.
    transaction.commit();
  });
}
