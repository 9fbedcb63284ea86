// Elements of the page, and values as people read them.

export const $ = (id) => document.getElementById(id);

export const ARROWS = {
  ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
};

export function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** A name that may be long: lines break after its signs first, then anywhere. */
export function named(text) {
  const parts = String(text).split(/(?<=[_\-.,:;/])/);
  const breakable = parts.flatMap((part) => [part, element("wbr", {})]).slice(0, -1);
  return element("span", { className: "name" }, ...breakable);
}

export const columnHead = (text, ...more) => element("th", { scope: "col" }, named(text), ...more);
export const rowHead = (text, rowSpan = 1) =>
  element("th", { scope: "row", rowSpan }, named(text));
export const cell = (text, className = "") => element("td", { className }, named(text));
export const tableRow = (...cells) => element("tr", {}, ...cells);

/** A table with its heads, which stay in sight while it is scrolled. */
export function table(heads, rows) {
  const head = element("thead", {}, tableRow(...heads));
  return element("table", {}, head, element("tbody", {}, ...rows));
}

export const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
export const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;

const withMinus = (number) => String(number).replace("-", "−");

/** A number with so many decimals; never "−0.0". */
export function fixed(x, decimals) {
  const rounded = Math.round(x * 10 ** decimals) / 10 ** decimals;
  return withMinus(Number.isFinite(rounded) ? (rounded + 0).toFixed(decimals) : x);
}

/** A number with few digits, but all those before the point; text as it is, nothing for null. */
export function shown(value, digits = 4) {
  if (typeof value !== "number") return value ?? "";
  const size = Math.abs(value);
  const isLong = size >= 10 ** digits && size < 1e12;
  return withMinus(isLong ? Math.round(value) : Number(value.toPrecision(digits)));
}

/** A mean and its standard deviation, with two digits of the deviation. */
export function withDeviation(mean, deviation) {
  const decimals = decimalsFor(deviation);
  if (typeof mean !== "number" || decimals === null) return shown(mean);
  return `${fixed(mean, decimals)} ± ${fixed(deviation, decimals)}`;
}

/** As many decimals as a deviation has in two digits; null where a number is not written so. */
export function decimalsFor(deviation) {
  const size = Math.floor(Math.log10(deviation));
  return Math.abs(size) > 6 ? null : clamp(1 - size, 0, 7);
}

/** A row of a list of bars: a name, a bar and a percentage. */
export function newBar() {
  const track = element("span", { className: "track" }, element("span", { className: "bar" }));
  return element("li", {}, element("span", {}), track, element("span", { className: "percent" }));
}

export function setBar(item, { name, share, isBest }) {
  const [label, track, number] = item.children;
  item.className = isBest ? "best" : "";
  if (label.textContent !== name) label.replaceChildren(named(name));
  track.firstChild.style.transform = `scaleX(${share})`;
  number.textContent = percent(share);
}

/** The most probable of some names, and how much the others have together. */
export function mostProbable(names, probabilities, count) {
  const order = names.map((_, i) => i);
  const larger = (a, b) => probabilities[b] - probabilities[a];
  const kept = order.sort(larger).slice(0, count);
  const sum = kept.reduce((total, i) => total + probabilities[i], 0);
  return { kept, others: names.length - kept.length, rest: clamp(1 - sum, 0, 1) };
}

export function showProblem(error) {
  if (error?.name === "AbortError") return; // its answer is no longer wanted
  $("problem").hidden = !error;
  $("problem").textContent = error ? error.message : "";
}
