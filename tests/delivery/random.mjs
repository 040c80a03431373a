//! Random numbers that are the same in every run.

/** Numbers of at least 0 and less than 1 (mulberry32). */
export function seeded(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  /** An integer of at least 0 and less than `count`. */
  next.below = (count) => Math.floor(next() * count);
  next.pick = (list) => list[next.below(list.length)];
  next.chance = (probability) => next() < probability;
  return next;
}

/** Pseudorandom bytes. */
export function randomBytes(size, seed) {
  const random = seeded(seed);
  const words = new Uint32Array(Math.ceil(size / 4));
  for (let index = 0; index < words.length; index++) words[index] = random() * 4294967296;
  return Buffer.from(words.buffer, 0, size);
}
