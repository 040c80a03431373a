//! The hidden frame that the service worker isolates for the CPU device's threads: its name, and the messages between it
//! and the page that contains it.

/** The frame's document, below the scope of the service worker. */
export const FRAME_FILE = "inpage-isolated-frame.html";

/** The parameter of the frame's query that has the page's client id. */
export const PAGE_PARAMETER = "page";

export const FRAME_CONNECT = "inpage:frame";

/** Page to the frame's window, once. A port comes with it; everything else is sent over that port. */
export interface ConnectToFrame {
  type: typeof FRAME_CONNECT;
  /** The name of a Web Lock that the frame holds while it exists: a port does not report that its other end is gone. */
  lock: string;
}

/** Page to frame. */
export type PageToFrame =
  /** Start this script as the engine worker. */
  | { type: "start"; script: string }
  /** A message for the engine worker. */
  | { type: "message"; message: unknown };

/** Frame to page. */
export type FrameToPage =
  /** The frame listens. `isolated`: its workers can share memory. */
  | { type: "connected"; isolated: boolean }
  /** A message from the engine worker. */
  | { type: "message"; message: unknown }
  /** The engine worker has failed, or cannot be started. */
  | { type: "error"; message: string };

/** The URL of the frame for a page. */
export function frameUrl(scope: string, pageId: string | undefined): string {
  const url = new URL(FRAME_FILE, scope);
  if (pageId !== undefined) url.searchParams.set(PAGE_PARAMETER, pageId);
  return url.href;
}

/** True if `url` is that of the frame of any page. */
export const isFrameUrl = (url: URL, scope: string) =>
  url.origin + url.pathname === new URL(FRAME_FILE, scope).href;
