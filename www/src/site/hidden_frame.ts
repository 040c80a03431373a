//! A frame of the page that is not visible. Its users decide on its content.

/** Puts a hidden frame into this page, at `url` if there is one. `prepare` is called before. */
export function addHiddenFrame(
  url: string | undefined,
  prepare: (element: HTMLIFrameElement) => void,
): HTMLIFrameElement {
  const element = document.createElement("iframe");
  prepare(element);
  element.hidden = true;
  // Style sheets may show hidden elements.
  element.style.setProperty("display", "none", "important");
  element.setAttribute("aria-hidden", "true");
  element.tabIndex = -1;
  if (url !== undefined) element.src = url;
  // Not in the body, which apps replace.
  document.documentElement.append(element);
  return element;
}
