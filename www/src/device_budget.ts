//! The memory that a model may need on phones and tablets, whose systems end a tab that takes too much without an error.

/** The facts that the page knows about its device. */
export interface DeviceHints {
  userAgent: string;
  /** Zero on a Mac. iPads say that they are Macs, and have more. */
  maxTouchPoints?: number;
  /** The memory in GiB, rounded, where the browser tells it; Safari does not. */
  deviceMemory?: number;
}

const GIB = 2 ** 30;

/** Ends of WebKit's process for a page are reported from about 1.5 GB on; the page, the wasm module and the GPU's copies need the rest. */
const IOS_BYTES = 1 * GIB;

/** Half of the memory is the system's and other apps'; at the end of a load, staging buffers and the page need as much again. */
const ANDROID_SHARE = 0.25;
const ANDROID_UNKNOWN_GIB = 4;

export type SmallSystem = "iOS" | "Android";

/** The system of a phone or tablet; undefined elsewhere. */
export function smallSystem({
  userAgent,
  maxTouchPoints = 0,
}: DeviceHints): SmallSystem | undefined {
  if (/\b(iPhone|iPad|iPod)\b/.test(userAgent)) return "iOS";
  // iPads ask for the desktop's pages.
  if (/\bMacintosh\b/.test(userAgent) && maxTouchPoints > 1) return "iOS";
  return /\bAndroid\b/.test(userAgent) ? "Android" : undefined;
}

/** The maximum number of bytes of memory that models should need; undefined where the system does not end tabs for it. docs/devices.md has sources. */
export function deviceBudgetBytes(hints: DeviceHints): number | undefined {
  const system = smallSystem(hints);
  if (system === undefined) return undefined;
  if (system === "iOS") return IOS_BYTES;
  return Math.floor((hints.deviceMemory ?? ANDROID_UNKNOWN_GIB) * ANDROID_SHARE * GIB);
}

/** The hints of this page; undefined outside of one. */
export function pageHints(): DeviceHints | undefined {
  const { document, navigator } = globalThis;
  if (document === undefined || navigator === undefined) return undefined;
  const { userAgent, maxTouchPoints } = navigator;
  const { deviceMemory } = navigator as { deviceMemory?: number };
  return { userAgent, maxTouchPoints, ...(deviceMemory !== undefined && { deviceMemory }) };
}
