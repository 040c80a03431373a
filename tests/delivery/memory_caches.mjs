//! The Cache API of a tab in memory. A tab that is killed in the middle of a `put` leaves the new response, the old one, or none.

const failure = (name, message = name) => new DOMException(message, name);

/** A stand-in for the global `caches`. One instance has the caches of all tabs of a browser. */
export class MemoryCaches {
  /** The caches by name; each has responses by URL. */
  caches = new Map();

  /** @param current gives the tab whose code is running */
  constructor(browser, current) {
    Object.assign(this, { browser, current });
  }

  get size() {
    let size = 0;
    for (const cache of this.caches.values()) {
      for (const { bytes } of cache.values()) size += bytes.length;
    }
    return size;
  }

  async open(name) {
    await this.current().alive();
    if (!this.caches.has(name)) this.caches.set(name, new Map());
    return new MemoryCache(this, this.caches.get(name));
  }

  async has(name) {
    await this.current().alive();
    return this.caches.has(name);
  }

  async delete(name) {
    await this.current().alive();
    return this.caches.delete(name);
  }

  async keys() {
    await this.current().alive();
    return [...this.caches.keys()];
  }

  async match(url, { cacheName }) {
    await this.current().alive();
    const stored = this.caches.get(cacheName)?.get(url);
    return stored && new StoredResponse(this, stored.bytes);
  }
}

class MemoryCache {
  constructor(all, responses) {
    Object.assign(this, { all, responses });
  }

  async put(url, response) {
    const { browser, current } = this.all;
    const tab = current();
    await tab.alive();
    const bytes = new Uint8Array(await browser.outside(() => response.arrayBuffer()));
    await tab.alive();
    const before = this.responses.get(url)?.bytes.length ?? 0;
    const free = (browser.quotaBytes ?? Number.POSITIVE_INFINITY) - browser.usedBytes;
    if (bytes.length - before > free) throw failure("QuotaExceededError");
    tab.writesToLive -= 1;
    const isLast = tab.writesToLive <= 0;
    const what = isLast ? browser.random.below(3) : 0;
    if (what === 0) this.responses.set(url, { bytes });
    if (what === 1) this.responses.delete(url);
    if (isLast) {
      tab.kill();
      await tab.alive();
    }
  }

  async delete(url, { ignoreSearch = false } = {}) {
    await this.all.current().alive();
    const bare = (one) => (ignoreSearch ? one.split("?")[0] : one);
    let isDeleted = false;
    for (const key of [...this.responses.keys()]) {
      if (bare(key) === bare(url)) isDeleted = this.responses.delete(key);
    }
    return isDeleted;
  }

  async keys() {
    await this.all.current().alive();
    return [...this.responses.keys()].map((url) => ({ url }));
  }
}

class StoredResponse {
  constructor(all, bytes) {
    Object.assign(this, { all, bytes });
  }

  async arrayBuffer() {
    await this.all.current().alive();
    return this.bytes.slice().buffer;
  }
}
