//! The Web Locks of the site that its service workers see, too. The locks of a page belong to the storage that the site had
//! when the page was loaded. After that was cleared (`Clear-Site-Data`), only new documents share locks with service workers.

import { addHiddenFrame } from "./hidden_frame.js";

/** An empty document whose locks replace those of the page. */
let frame: HTMLIFrameElement | undefined;

let renewal: Promise<unknown> | undefined;

/** The locks to use; not those of a frame that the app has removed. */
export function siteLocks(): LockManager {
  return frame?.contentWindow?.navigator.locks ?? navigator.locks;
}

/**
 * Resolves when `siteLocks` returns other locks than `unseen`, which service workers do not see.
 *
 * @throws Error if the page cannot have a frame
 */
export async function renewSiteLocks(unseen: LockManager): Promise<void> {
  if (siteLocks() !== unseen) return;
  renewal ??= newFrame().finally(() => {
    renewal = undefined;
  });
  await renewal;
}

async function newFrame(): Promise<void> {
  const previous = frame;
  // Some browsers replace the first document of a frame before they report that it is loaded.
  frame = await new Promise<HTMLIFrameElement>((resolve) => {
    addHiddenFrame(undefined, (element) =>
      element.addEventListener("load", () => resolve(element), { once: true }),
    );
  });
  previous?.remove();
}
