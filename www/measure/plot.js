//! Bars of decode speed, as an image that scales with the page.

/** @import { Result } from "./measure.js" */

const NAMESPACE = "http://www.w3.org/2000/svg";
const [WIDTH, LEFT, HEIGHT] = [640, 180, 32];

/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @param {string} [text]
 */
function element(name, attributes, text) {
  const created = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, String(value));
  if (text !== undefined) created.textContent = text;
  return created;
}

/** @param {readonly Result[]} results */
export function plot(results) {
  const bars = results.flatMap(({ runtime, decode }) =>
    decode === undefined ? [] : [{ runtime, decode }],
  );
  if (bars.length === 0) return undefined;
  const most = Math.max(...bars.map(({ decode }) => decode));
  const box = `0 0 ${WIDTH} ${bars.length * HEIGHT + 8}`;
  const svg = element("svg", { viewBox: box, role: "img", "font-size": 14 });
  svg.append(element("title", {}, "Decode speed in tokens per second"));
  for (const [i, { runtime, decode }] of bars.entries()) {
    const y = i * HEIGHT + 4;
    const width = Math.max(1, (decode / most) * (WIDTH - LEFT - 80));
    svg.append(
      element("text", { x: LEFT - 8, y: y + 17, "text-anchor": "end" }, runtime),
      element("rect", { class: "bar", x: LEFT, y, width, height: HEIGHT - 8 }),
      element("text", { x: LEFT + width + 6, y: y + 17 }, String(Number(decode.toPrecision(3)))),
    );
  }
  return svg;
}
