//! Whether the engine worker of this page needs an isolated frame to have threads, and the frame's URL: which service worker
//! answers it, and the registration of one if the app asks for that.

import { basePathsOf } from "../exchange/base_paths.js";
import type { StartOptions } from "../exchange/protocol.js";
import { fromQuery, normalizedBasePaths } from "../exchange/served_urls.js";
import { hasHardwareAdapter } from "../hardware_adapter.js";
import {
  type IsolatedFrameOptions,
  type WorkerPlace,
  changeOrPause,
  placeOf,
  registerForClaims,
  reportOf,
} from "../site/interception.js";

/** The time that a service worker may take to become active. */
const ACTIVATION_TIMEOUT_MS = 8000;

/**
 * The URL of the frame in which the engine worker of this page has threads.
 *
 * @param frame what the app said: `undefined` registers no service worker
 * @throws Error that says why there is no frame, or why none is needed
 */
export async function findFrame(
  { device, threads, switches }: StartOptions,
  frame: IsolatedFrameOptions | false | undefined,
): Promise<string> {
  if (frame === false) throw new Error("isolatedFrame is false");
  if (device === "webgpu") throw new Error("the device is webgpu");
  const mostThreads = threads ?? navigator.hardwareConcurrency;
  if (!(mostThreads > 1)) throw new Error("there is one thread");
  const container: ServiceWorkerContainer | undefined = navigator.serviceWorker;
  // An engine may be created in a worker, which has no frames.
  const isPage = typeof document !== "undefined" && document.documentElement !== null;
  if (!isPage || container === undefined || navigator.locks === undefined) {
    throw new Error("there are no service workers here");
  }
  if (!mayIsolateFrames()) {
    throw new Error(
      "this browser does not isolate frames: for threads the page must be cross-origin isolated itself",
    );
  }
  const place = frame && placeOf(frame);
  const present = (await container.getRegistration(place?.scope))?.active ?? undefined;
  if (place === undefined && !(present && isOurs(present))) {
    throw new Error("no service worker of inpage is active here: see the option isolatedFrame");
  }
  // A page with a GPU pays for this question only.
  if (device !== "cpu" && (await hasHardwareAdapter())) throw new Error("there is a GPU");
  const found = present && isOurs(present) ? (await reportOf(present))?.frame : undefined;
  if (found !== undefined && (place === undefined || found.startsWith(place.scope))) return found;
  if (place === undefined) {
    throw new Error("the active service worker is of an older version, without isolated frames");
  }
  const basePaths = normalizedBasePaths(switches.basePaths ?? basePathsOf(switches.profile));
  return frameOfRegistered(container, place, basePaths);
}

/** Only browsers of Chromium know the header `Document-Isolation-Policy`, which no page can ask for. */
function mayIsolateFrames(): boolean {
  const { userAgentData } = navigator as Navigator & {
    userAgentData?: { brands: readonly { brand: string }[] };
  };
  return userAgentData?.brands.some(({ brand }) => brand === "Chromium") ?? false;
}

/** A worker that pages of inpage have registered: its URL names base paths. Others may never answer a question. */
const isOurs = ({ scriptURL }: ServiceWorker) =>
  fromQuery(new URL(scriptURL)).basePaths !== undefined;

/** Registers the service worker as `serveFromPage` would, which then finds it in place. */
async function frameOfRegistered(
  container: ServiceWorkerContainer,
  place: WorkerPlace,
  basePaths: readonly string[],
): Promise<string> {
  const { registration } = await registerForClaims(container, place, { basePaths });
  const end = performance.now() + ACTIVATION_TIMEOUT_MS;
  for (;;) {
    const { active, installing, waiting } = registration;
    const isReplaced = (installing ?? waiting) !== null;
    if (active?.state === "activated" && !isReplaced) {
      const frame = (await reportOf(active))?.frame;
      if (frame !== undefined) return frame;
      if (active === registration.active && !registration.installing) {
        throw new Error(`the service worker ${place.script.href} has no isolated frames`);
      }
    }
    if (performance.now() > end) throw new Error("the service worker did not start");
    await changeOrPause(container, 100);
  }
}
