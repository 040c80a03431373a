//! The division of a product or an attention, both called product here, among the threads of the CPU device: an array in shared memory from which each thread takes parts.
//! Knows neither workers nor what a part computes.

/** Computes a part of the product at an address; returns 0 if it does not compute it. */
export type ComputePart = (address: number, part: number, parts: number) => number;

// Words of the shared array.
/** The number of the product, shifted by `PART_BITS`, and the part that the next thread takes. */
const GATE = 0;
/** The parts of the product. Changes only while the gate is closed. */
const PARTS = 1;
/** The address of the product. Changes only while the gate is closed. */
const ADDRESS = 2;
/** Parts that are computed. */
const DONE = 3;
/** Parts that were refused. */
const REFUSED = 4;
/** The number of the product: threads without work wait until it changes. */
const PRODUCT = 5;
/** Threads that wait for it asleep. */
const SLEEPERS = 6;
const WORDS = 7;

/** The array. */
export type Division = Int32Array<SharedArrayBuffer>;

const PART_BITS = 8;
const PART_MASK = (1 << PART_BITS) - 1;
/** A part that no product has: the gate is closed. */
const CLOSED = PART_MASK;
/** The maximum number of parts of a product. */
const MAX_PARTS = CLOSED - 1;

/**
 * The time for which a thread without work, or the one that waits for others, looks at the array before it sleeps. The products of a
 * token follow one another closely. Ten times as long was measured to change nothing.
 */
const SPIN_MS = 0.1;
/** The clock costs more than a look at the array. */
const LOOKS_PER_CLOCK = 64;

/** A shared array for `computeProduct` and `serveProducts`. */
export function createDivision(): Division {
  const division = new Int32Array(new SharedArrayBuffer(WORDS * 4));
  division[GATE] = CLOSED;
  return division;
}

/**
 * Computes a product together with the threads that serve the array, of which only one may call this. Returns false if
 * a part was refused.
 */
export function computeProduct(
  division: Division,
  compute: ComputePart,
  address: number,
  parts: number,
): boolean {
  if (parts < 2) return compute(address, 0, 1) !== 0;
  const count = Math.min(parts, MAX_PARTS);
  Atomics.store(division, PARTS, count);
  Atomics.store(division, ADDRESS, address | 0);
  Atomics.store(division, DONE, 0);
  Atomics.store(division, REFUSED, 0);
  const product = Atomics.load(division, PRODUCT) + 1;
  Atomics.store(division, GATE, product << PART_BITS);
  Atomics.store(division, PRODUCT, product);
  if (Atomics.load(division, SLEEPERS) > 0) Atomics.notify(division, PRODUCT);
  takeParts(division, compute);
  let done = Atomics.load(division, DONE);
  while (done !== count) {
    waitForChange(division, DONE, done);
    done = Atomics.load(division, DONE);
  }
  Atomics.store(division, GATE, (product << PART_BITS) | CLOSED);
  return Atomics.load(division, REFUSED) === 0;
}

/** Computes parts of all products, forever: the thread's other events are never handled. */
export function serveProducts(division: Division, compute: ComputePart): never {
  for (;;) {
    const product = Atomics.load(division, PRODUCT);
    takeParts(division, compute);
    waitForChange(division, PRODUCT, product, SLEEPERS);
  }
}

/** Computes parts until none is left. */
function takeParts(division: Division, compute: ComputePart): void {
  for (;;) {
    const gate = Atomics.load(division, GATE);
    const part = gate & PART_MASK;
    const parts = Atomics.load(division, PARTS);
    if (part >= parts) return;
    const address = Atomics.load(division, ADDRESS) >>> 0;
    // If the gate has not changed, parts and address are those of its product.
    if (Atomics.compareExchange(division, GATE, gate, gate + 1) !== gate) continue;
    if (compute(address, part, parts) === 0) Atomics.add(division, REFUSED, 1);
    if (Atomics.add(division, DONE, 1) === parts - 1) Atomics.notify(division, DONE);
  }
}

/** Waits until a word has another value than `seen`. While asleep, the thread is counted in `sleepers`. */
function waitForChange(division: Division, word: number, seen: number, sleepers?: number): void {
  const end = performance.now() + SPIN_MS;
  do {
    for (let look = 0; look < LOOKS_PER_CLOCK; look++) {
      if (Atomics.load(division, word) !== seen) return;
    }
  } while (performance.now() < end);
  if (sleepers !== undefined) Atomics.add(division, sleepers, 1);
  Atomics.wait(division, word, seen);
  if (sleepers !== undefined) Atomics.sub(division, sleepers, 1);
}
