// Look inside: samples of every class, and what the channels of a node stand for.

import {
  $, ARROWS, cell, clamp, columnHead, element, named, percent, plural, rowHead, shown, showProblem,
  table, tableRow, withDeviation,
} from "./elements.js";
import { colours, css, imagePoint, paint, paintBox, paintImage } from "./pictures.js";
import { columns, hasClasses, query, requestJson, state } from "./service.js";

const MAX_CLASSES = 24; // shown with samples
const CHANNELS = 8; // shown of a node
const SAMPLES = { image: 24, table: 64 }; // of each channel; a table shows their mean

const look = { seed: 1, level: 0, node: 0, loaded: null };

const NEURONS_HINT = {
  image: "Choose a level, then a node: click the grid or use the arrow keys on it. Each picture is "
    + "the average of samples of the pixels below one channel; the percentage is how often the "
    + "channel is used.",
  table: "Choose a level, then a node. Each row is a column of the table below this node, each "
    + "column is one channel: mean and deviation of its samples, the date in their middle, or the "
    + "most frequent category. The percentage is how often the channel is used.",
};

/** Nothing of the model before stays. */
export function forgetLook() {
  look.loaded = null;
  $("look").ariaBusy = false;
  for (const id of ["samples", "channels", "levels", "nodes"]) $(id).replaceChildren();
  $("node-name").textContent = "";
  Object.assign($("grid"), { width: 1, height: 1, repaint: null });
}

export async function openLook() {
  const { model } = state;
  if (look.loaded === model) return;
  look.loaded = model;
  $("look").ariaBusy = true;
  model.trees ??= (await requestJson(`/v1/models/${encodeURIComponent(model.name)}`)).trees;
  buildLevels();
  $("neurons-hint").textContent = NEURONS_HINT[model.image ? "image" : "table"];
  await Promise.all([showSamples(), showNode()]);
  $("look").ariaBusy = false;
}

// ---- samples of classes ------------------------------------------------------------------------

async function showSamples() {
  const { classes, image } = state.model;
  const parts = await Promise.all(classes.slice(0, MAX_CLASSES).map(samplesOfClass));
  $("samples-title").textContent = hasClasses() ? "Samples of each class" : "Samples";
  $("samples-hint").textContent = classes.length > MAX_CLASSES
    ? `The first ${MAX_CLASSES} of ${classes.length} classes.`
    : "";
  $("samples").replaceChildren(...(image ? parts : [samplesTable(parts.flat())]));
}

function samplesTable(rows) {
  const names = columns().map(({ name }) => name);
  const target = hasClasses() ? [state.model.target ?? "class"] : [];
  const heads = [...target, ...names].map((name) => columnHead(name));
  const scroll = { className: "scroll tall", tabIndex: 0, role: "region", ariaLabel: "Samples" };
  return element("div", scroll, table(heads, rows));
}

/** A line of pictures, or rows of a table. */
async function samplesOfClass(name, index) {
  const { image, classes } = state.model;
  const count = image ? 6 : clamp(Math.floor(15 / classes.length), 2, 5);
  const parameters = query({ class: name, count, seed: 1000 * look.seed + index });
  const { rows } = await requestJson(`/v1/sample?${parameters}`);
  if (!image) return rows.map(({ values }, i) => sampleRow(i === 0 && [name, count], values));
  const pictures = rows.map(({ values }) => {
    const canvas = element("canvas", { role: "img", ariaLabel: `A sample of ${name}` });
    paintImage(canvas, values, 84, values.map(() => null));
    return canvas;
  });
  const label = element("strong", {}, named(hasClasses() ? name : ""));
  return element("div", { className: "class-row" }, label, element("div", {}, ...pictures));
}

/** The first row of a class names it and says how many rows it has. */
function sampleRow(first, values) {
  const head = first && hasClasses() ? [rowHead(...first)] : [];
  return tableRow(...head, ...values.map((x) => cell(shown(x))));
}

// ---- levels and nodes --------------------------------------------------------------------------

function buildLevels() {
  const levels = state.model.trees[0];
  look.level = Math.min(levels.length - 1, 2);
  look.node = middleNode(levels[look.level]);
  $("levels").replaceChildren(...levels.map(levelChoice));
}

function levelChoice(level, l) {
  const checked = l === look.level;
  const radio = element("input", { type: "radio", name: "level", value: l, checked });
  radio.addEventListener("change", () => {
    look.level = l;
    chooseNode(middleNode(level));
  });
  const size = `${plural(level.nodes, "node")} · ${plural(level.channels, "channel")}`;
  return element("label", { className: "pick" }, radio, `${levelName(l)} · ${size}`);
}

const levelName = (l) => (l === 0 ? "Leaves" : `Level ${l}`);

function chooseNode(node) {
  look.node = node;
  showNode().catch(showProblem);
}

/** The node in the middle of the image; the first one of a table. */
function middleNode({ boxes }) {
  if (!boxes || !state.model.image) return 0;
  const { height, width } = state.model.image;
  return Math.max(0, nodeAt(boxes, height / 2, width / 2));
}

/** The first node whose box [top, left, height, width] holds a point, or -1. */
function nodeAt(boxes, y, x) {
  const holds = ([top, left, height, width]) =>
    y >= top && y < top + height && x >= left && x < left + width;
  return boxes.findIndex((box) => box && holds(box));
}

const boxesOfLevel = () => state.model.trees[0][look.level].boxes;

function showNodes() {
  const boxes = boxesOfLevel();
  $("grid").hidden = !boxes;
  const { nodes } = state.model.trees[0][look.level];
  $("nodes").hidden = Boolean(boxes) || nodes === 1;
  if (boxes) paintGrid(boxes);
  else showNodeButtons(nodes);
}

function showNodeButtons(count) {
  const button = (_, node) => {
    const ariaPressed = node === look.node;
    const made = element("button", { type: "button", textContent: node, ariaPressed });
    made.addEventListener("click", () => {
      chooseNode(node);
      $("nodes").children[node].focus();
    });
    return made;
  };
  $("nodes").replaceChildren(...Array.from({ length: count }, button));
}

function paintGrid(boxes) {
  const { height, width } = state.model.image;
  const scale = Math.max(2, Math.floor(280 / Math.max(height, width)));
  const context = paint($("grid"), width, height, scale, () => colours.paper);
  $("grid").repaint = () => paintGrid(boxes);
  const outline = (box, inset) => {
    const [top, left, down, across] = box.map((n) => n * scale);
    context.strokeRect(left + inset, top + inset, across - 2 * inset, down - 2 * inset);
  };
  context.lineWidth = 1;
  context.strokeStyle = css(colours.stripe);
  for (const box of boxes) if (box) outline(box, 0.5);
  const chosen = boxes[look.node];
  if (!chosen) return;
  const [top, left, down, across] = chosen.map((n) => n * scale);
  context.fillStyle = `rgba(${colours.heat.join()}, 0.25)`;
  context.fillRect(left, top, across, down);
  context.strokeStyle = css(colours.heat);
  context.lineWidth = 3;
  outline(chosen, 1.5);
}

/** The nearest node in a direction; a step aside costs three ahead. */
function neighbour(boxes, [down, right]) {
  const centre = (box) => [box[0] + box[2] / 2, box[1] + box[3] / 2];
  const here = boxes[look.node] ? centre(boxes[look.node]) : [0, 0];
  let best = null;
  let least = Infinity;
  boxes.forEach((box, node) => {
    if (!box || node === look.node) return;
    const [dy, dx] = [centre(box)[0] - here[0], centre(box)[1] - here[1]];
    const ahead = dy * down + dx * right;
    const cost = ahead + 3 * (Math.abs(dy * right) + Math.abs(dx * down));
    if (ahead > 0 && cost < least) [best, least] = [node, cost];
  });
  return best;
}

// ---- channels ----------------------------------------------------------------------------------

async function showNode() {
  showNodes();
  const { level, node, seed } = look;
  const count = SAMPLES[state.model.image ? "image" : "table"];
  const parameters = query({ level, node, channels: CHANNELS, count, seed });
  const { rows } = await requestJson(`/v1/explain?${parameters}`);
  if (level !== look.level || node !== look.node) return; // another one has been chosen meanwhile
  $("node-name").textContent = `${levelName(level)}, node ${node}`;
  const channels = channelsOf(rows);
  $("channels").replaceChildren(
    ...(state.model.image ? channels.map(channelPictures) : [channelTable(channels)]));
}

/** Rows of an explanation by channel: its number, how often it is used, its samples. */
function channelsOf(rows) {
  const all = new Map();
  for (const { channel, probability, values } of rows) {
    if (!all.has(channel)) all.set(channel, { channel, probability, samples: [] });
    all.get(channel).samples.push(values);
  }
  return [...all.values()];
}

/** Columns of the table below the node against its channels. */
function channelTable(channels) {
  const head = ({ channel, probability }) => {
    const used = element("small", { textContent: percent(probability) });
    return columnHead(`channel ${channel}`, used);
  };
  const below = columns().map((column, i) => ({ ...column, i }))
    .filter(({ i }) => channels[0].samples[0][i] !== null);
  const rows = below.map((column) => tableRow(rowHead(column.name), ...cellsOf(column, channels)));
  const scroll = { className: "scroll tall", tabIndex: 0, role: "region", ariaLabel: "Channels" };
  return element("div", scroll, table([columnHead("column"), ...channels.map(head)], rows));
}

/** What the channels say of one column; the larger a mean, the stronger its tint. */
function cellsOf(column, channels) {
  const all = channels.map(({ samples }) => samples.map((values) => values[column.i]));
  if (column.kind === "category") {
    return all.map((values) => cell(mostFrequent(values)));
  }
  if (column.kind === "date") return all.map((values) => cell(`around ${middle(values)}`));
  const [means, deviations] = [all.map(mean), all.map(deviation)];
  const low = Math.min(...means);
  const span = Math.max(Math.max(...means) - low, mean(deviations)) || 1;
  return all.map((_, at) => {
    const made = cell(withDeviation(means[at], deviations[at]), "tinted");
    made.style.setProperty("--tint", `${clamp((100 * (means[at] - low)) / span, 0, 100)}%`);
    return made;
  });
}

const mean = (values) => values.reduce((sum, x) => sum + x, 0) / values.length;

function deviation(values) {
  const centre = mean(values);
  return Math.sqrt(mean(values.map((x) => (x - centre) ** 2)));
}

/** The median of dates, which sort as text: the year comes first. */
const middle = (dates) => [...dates].sort()[dates.length >> 1];

function mostFrequent(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  const [name, count] = [...counts].reduce((best, other) => (other[1] > best[1] ? other : best));
  return `${name} ${percent(count / values.length, 0)}`;
}

/** The average of the samples, and three of them. */
function channelPictures({ channel, probability, samples }) {
  const { height, width } = state.model.image;
  const box = boxesOfLevel()?.[look.node] ?? [0, 0, height, width];
  const scale = Math.max(2, Math.floor(132 / Math.max(box[2], box[3])));
  const label = `Average of samples below channel ${channel}`;
  const canvas = element("canvas", { role: "img", ariaLabel: label });
  paintBox(canvas, averageImage(samples), box, scale);
  const trio = samples.slice(0, 3).map((values) => {
    const small = element("canvas", { role: "img", ariaLabel: "A sample" });
    paintBox(small, values, box, Math.max(1, Math.floor(scale / 3)));
    return small;
  });
  const text = `channel ${channel} · ${percent(probability)}`;
  const caption = element("figcaption", { textContent: text });
  return element("figure", {}, canvas, element("div", { className: "trio" }, ...trio), caption);
}

/** The mean of images, each within the range of the data. */
function averageImage(samples) {
  const [low, high] = [Math.min(...state.model.image.range), Math.max(...state.model.image.range)];
  return samples[0].map((first, i) => {
    if (first === null) return null;
    return mean(samples.map((values) => clamp(values[i], low, high)));
  });
}

export function listenToLook() {
  $("again").addEventListener("click", () => {
    look.seed += 1;
    showSamples().catch(showProblem);
  });
  $("grid").addEventListener("click", (event) => {
    const node = nodeAt(boxesOfLevel(), ...imagePoint($("grid"), event));
    if (node >= 0) chooseNode(node);
  });
  $("grid").addEventListener("keydown", (event) => {
    const move = ARROWS[event.key];
    if (!move) return;
    event.preventDefault();
    const node = neighbour(boxesOfLevel(), move);
    if (node !== null) chooseNode(node);
  });
}
