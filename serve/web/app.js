// The page of `sumout serve`: erase pixels and watch, look inside, fill a table.
// Plain JavaScript, no dependencies.

const $ = (id) => document.getElementById(id);
const MAX_RETRIES = 10; // of a request to a busy service
const COMPLETIONS = 4; // samples shown beside the mean
const MAX_BARS = 12; // classes shown
const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const state = { models: [], model: null, tool: "erase", view: "erase" };

// ---- requests ----------------------------------------------------------------------------------

/** Fetches; asks the user for a token where one is needed, and waits while the service is busy. */
async function request(path, options = {}, retries = 0) {
  const token = sessionStorage.getItem("token");
  const headers = { ...options.headers, ...(token ? { authorization: `Bearer ${token}` } : {}) };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch {
    throw new Error("The service does not answer. Is it still running?");
  }
  if (response.status === 401) {
    await askForToken();
    return request(path, options, retries);
  }
  const busy = response.status === 503 || response.status === 429;
  if (busy && retries < MAX_RETRIES) {
    await new Promise((resolve) => setTimeout(resolve, 300));
    return request(path, options, retries + 1);
  }
  if (!response.ok) throw new Error(errorMessage(await response.text()));
  return response;
}

const requestJson = async (path, options) => (await request(path, options)).json();

/** The message in an error of the service; other text (of a proxy, say) as it is. */
function errorMessage(text) {
  try {
    return JSON.parse(text).error;
  } catch {
    return text;
  }
}

function askForToken() {
  const dialog = $("ask-token");
  $("token").value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    const keepToken = () => {
      sessionStorage.setItem("token", $("token").value.trim());
      resolve();
    };
    dialog.addEventListener("close", keepToken, { once: true });
  });
}

function showProblem(error) {
  $("problem").hidden = !error;
  $("problem").textContent = error ? error.message : "";
}

/** Query parameters, with the name of the model. */
const query = (parameters) => new URLSearchParams({ model: state.model.name, ...parameters });

// ---- elements ----------------------------------------------------------------------------------

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

const columnHead = (text) => element("th", { textContent: text, scope: "col" });
const rowHead = (text) => element("th", { textContent: text, scope: "row" });
const tableRow = (...cells) => element("tr", {}, ...cells);

/** A value for a person to read: a number with few digits, text as it is, nothing for null. */
function shown(value, digits = 4) {
  return typeof value === "number" ? Number(value.toPrecision(digits)) : value ?? "";
}

const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;
const clamp = (x, low, high) => Math.min(high, Math.max(low, x));

// ---- pictures ----------------------------------------------------------------------------------

let colours;

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const rgb = (name) => {
    const hex = style.getPropertyValue(`--${name}`).trim();
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  };
  const names = ["paper", "ink", "hole", "stripe", "heat"];
  colours = Object.fromEntries(names.map((name) => [name, rgb(name)]));
}

const css = (colour) => `rgb(${colour.join()})`;
const mix = (a, b, t) => a.map((x, i) => x + (b[i] - x) * t);

/** The colour of a pixel: values from `low` to `high`; three channels are red, green and blue. */
function pixelColour(values, at) {
  const { channels, range: [low, high] } = state.model.image;
  const part = (x) => clamp((x - low) / (high - low), 0, 1);
  if (channels === 3) return [0, 1, 2].map((c) => 255 * part(values[at * 3 + c]));
  return mix(colours.paper, colours.ink, part(values[at * channels]));
}

/** Paints each pixel as a square of `scale` screen pixels; striped where its colour is null. */
function paint(canvas, width, height, scale, colourOf) {
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext("2d");
  const picture = context.createImageData(canvas.width, canvas.height);
  const data = new Uint32Array(picture.data.buffer);
  const packed = ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  const [stripe, hole] = [packed(colours.stripe), packed(colours.hole)];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const colour = colourOf(y * width + x);
      const plain = colour && packed(colour);
      for (let v = y * scale; v < (y + 1) * scale; v++) {
        for (let u = x * scale; u < (x + 1) * scale; u++) {
          data[v * canvas.width + u] = plain ?? ((u + v) % 8 < 2 ? stripe : hole);
        }
      }
    }
  }
  context.putImageData(picture, 0, 0);
  return context;
}

function paintImage(canvas, values, scale = 4) {
  const { height, width } = state.model.image;
  paintBox(canvas, values, [0, 0, height, width], scale);
}

/** Only the box [top, left, height, width] of an image. */
function paintBox(canvas, values, [top, left, height, width], scale) {
  const { width: whole, channels } = state.model.image;
  paint(canvas, width, height, scale, (at) => {
    const place = (top + Math.floor(at / width)) * whole + left + (at % width);
    return values[place * channels] === null ? null : pixelColour(values, place);
  });
}

/** Where in the image a pointer is, [y, x] in pixels. */
function imagePoint(canvas, event) {
  const box = canvas.getBoundingClientRect();
  const { height, width } = state.model.image;
  return [
    ((event.clientY - box.top) / box.height) * height,
    ((event.clientX - box.left) / box.width) * width,
  ];
}

// ---- erase: the image --------------------------------------------------------------------------

const RESTORED = 101; // an order the slider, which ends at 95, never reaches

const sheet = {
  values: [],
  erased: [], // by the user, one for each pixel
  order: [], // from 0 to 100: pixels below the slider's value are missing
  cursor: [0, 0],
  showCursor: false,
};

function newSheet(values) {
  const { height, width } = state.model.image;
  const count = height * width;
  sheet.values = values.slice();
  sheet.erased = new Array(count).fill(false);
  sheet.order = Array.from({ length: count }, () => 100 * Math.random());
  sheet.cursor = [Math.floor(height / 2), Math.floor(width / 2)];
}

const isMissing = (at) => sheet.erased[at] || sheet.order[at] < Number($("drop").value);

function erase(at) {
  sheet.erased[at] = true;
}

function restore(at) {
  sheet.erased[at] = false;
  sheet.order[at] = RESTORED;
}

/** The row for the service: null is missing. */
function sheetRow() {
  const { channels } = state.model.image;
  return sheet.values.map((x, i) => (isMissing(Math.floor(i / channels)) ? null : x));
}

function paintSheet() {
  const { height, width } = state.model.image;
  const scale = 12;
  const context = paint($("canvas"), width, height, scale, (at) =>
    isMissing(at) ? null : pixelColour(sheet.values, at));
  if (!sheet.showCursor) return;
  const [y, x] = sheet.cursor;
  context.strokeStyle = css(colours.heat);
  context.lineWidth = 3;
  context.beginPath();
  context.arc((x + 0.5) * scale, (y + 0.5) * scale, brushRadius() * scale, 0, 2 * Math.PI);
  context.stroke();
}

const brushRadius = () => Number($("brush").value) * (state.tool === "draw" ? 0.35 : 0.6);

/** Uses the tool at a point, in pixels. */
function applyTool(y, x) {
  const { height, width } = state.model.image;
  const r = brushRadius();
  const [bottom, right] = [Math.min(height - 1, y + r + 1), Math.min(width - 1, x + r + 1)];
  for (let row = Math.max(0, Math.floor(y - r - 1)); row <= bottom; row++) {
    for (let column = Math.max(0, Math.floor(x - r - 1)); column <= right; column++) {
      const distance = Math.hypot(row + 0.5 - y, column + 0.5 - x);
      const at = row * width + column;
      if (state.tool === "draw") drawPixel(at, clamp(r + 0.7 - distance, 0, 1));
      else if (distance <= r + 0.2) (state.tool === "erase" ? erase : restore)(at);
    }
  }
}

/** Adds ink, from 0 to 1, to a pixel; a missing one starts empty. */
function drawPixel(at, ink) {
  const { channels, range: [low, high] } = state.model.image;
  if (ink === 0) return;
  if (isMissing(at)) sheet.values.fill(low, at * channels, (at + 1) * channels);
  restore(at);
  for (let i = at * channels; i < (at + 1) * channels; i++) {
    sheet.values[i] = Math.max(sheet.values[i], low + ink * (high - low));
  }
}

let strokeEnd = null; // where the stroke under way is

function listenToPointer() {
  const canvas = $("canvas");
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    sheet.showCursor = false;
    strokeEnd = imagePoint(canvas, event);
    stroke(event);
  });
  canvas.addEventListener("pointermove", (event) => strokeEnd && stroke(event));
  for (const end of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(end, () => (strokeEnd = null));
  }
}

/** Browsers gather fast moves into one event; each part of it is drawn. */
function stroke(event) {
  const parts = event.getCoalescedEvents?.() ?? [];
  for (const part of parts.length ? parts : [event]) strokeTo(imagePoint($("canvas"), part));
  changed();
}

function strokeTo([y, x]) {
  const [fromY, fromX] = strokeEnd;
  const steps = Math.max(1, Math.ceil(2 * Math.hypot(y - fromY, x - fromX)));
  for (let i = 1; i <= steps; i++) {
    applyTool(fromY + ((y - fromY) * i) / steps, fromX + ((x - fromX) * i) / steps);
  }
  strokeEnd = [y, x];
}

function listenToKeys() {
  $("canvas").addEventListener("keydown", (event) => {
    const move = ARROWS[event.key];
    if (move) {
      moveCursor(move);
    } else if (event.key === " " || event.key === "Enter") {
      applyTool(sheet.cursor[0] + 0.5, sheet.cursor[1] + 0.5);
      changed();
    } else {
      return;
    }
    event.preventDefault();
    sheet.showCursor = true;
    paintSheet();
  });
  $("canvas").addEventListener("blur", () => {
    sheet.showCursor = false;
    if (state.model?.image) paintSheet();
  });
}

function moveCursor([down, right]) {
  const { height, width } = state.model.image;
  const [y, x] = sheet.cursor;
  sheet.cursor = [clamp(y + down, 0, height - 1), clamp(x + right, 0, width - 1)];
}

function listenToTools() {
  $("square").addEventListener("click", eraseSquare);
  $("restore-all").addEventListener("click", () => startSheet(sheet.values));
  $("blank").addEventListener("click", () => {
    useTool("draw");
    startSheet(blankImage());
  });
  $("drop").addEventListener("input", changed);
  $("brush").addEventListener("input", showSliders);
  for (const radio of document.querySelectorAll("[name=tool]")) {
    radio.addEventListener("change", () => useTool(radio.value));
  }
}

/** At a random place. */
function eraseSquare() {
  const { height, width } = state.model.image;
  const side = Math.max(1, Math.round(Math.min(height, width) * 0.32));
  const top = Math.floor(Math.random() * (height - side + 1));
  const left = Math.floor(Math.random() * (width - side + 1));
  for (let y = top; y < top + side; y++) {
    sheet.erased.fill(true, y * width + left, y * width + left + side);
  }
  changed();
}

/** An image with nothing missing. */
function startSheet(values) {
  $("drop").value = 0;
  newSheet(values);
  changed();
}

const blankImage = () => new Array(state.model.width).fill(state.model.image.range[0]);

function useTool(tool) {
  state.tool = tool;
  document.querySelector(`[name=tool][value=${tool}]`).checked = true;
}

function showSliders() {
  $("brush-out").textContent = $("brush").value;
  $("drop-out").textContent = `${$("drop").value} %`;
}

// ---- erase: the form of a table ----------------------------------------------------------------

const columns = () => state.model.columns.length
  ? state.model.columns
  : Array.from({ length: state.model.width }, (_, i) => ({ name: `x${i}`, categories: null }));

function buildForm() {
  const hint = element("p", { className: "hint", textContent: "Leave unknown values empty." });
  const fields = columns().flatMap((column, i) => [
    element("label", { textContent: column.name, htmlFor: `column-${i}` }),
    formInput(column, `column-${i}`),
  ]);
  $("table-ask").replaceChildren(hint, ...fields);
}

function formInput(column, id) {
  if (!column.categories) {
    return element("input", { id, type: "number", step: "any", placeholder: "missing" });
  }
  const option = (name) => element("option", { value: name, textContent: name });
  return element("select", { id }, ...["", ...column.categories].map(option));
}

/** The row for the service: null is missing. */
function formRow() {
  return columns().map((column, i) => {
    const text = $(`column-${i}`).value;
    if (text === "") return null;
    return column.categories ? text : Number(text);
  });
}

function showTable(answer, asked) {
  const samples = answer.draws.map((_, i) => `sample ${i + 1}`);
  const head = tableRow(...["", "value", "±", ...samples].map(columnHead));
  const rows = columns().map((column, i) => filledRow(column, i, answer, asked[i] === null));
  const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
  $("table-answer").replaceChildren(table);
}

/** Value, deviation and samples of one column; only the value where it was observed. */
function filledRow(column, i, answer, filled) {
  const deviation = column.categories ? null : answer.deviation[i];
  const value = element("td", {
    textContent: shown(answer.values[i]),
    className: filled ? "filled" : "",
  });
  const others = [deviation, ...answer.draws.map((draw) => draw[i])];
  const cells = others.map((x) => element("td", { textContent: filled ? shown(x) : "" }));
  return tableRow(rowHead(column.name), value, ...cells);
}

// ---- erase: the answer -------------------------------------------------------------------------

const live = { dirty: false, busy: false, since: 0 };

/** Called on every change of the row. Only one request is under way; the latest row wins. */
function changed() {
  if (!live.dirty) live.since = performance.now();
  live.dirty = true;
  showSliders();
  if (state.model.image) paintSheet();
  if (!live.busy) update();
}

async function update() {
  live.busy = true;
  while (live.dirty) {
    live.dirty = false;
    const [model, since] = [state.model, live.since];
    const asked = model.image ? sheetRow() : formRow();
    try {
      const { classes, rows: [answer] } = await requestAnswer(asked);
      if (model !== state.model) continue;
      showAnswer(classes, answer, asked, Math.round(performance.now() - since));
      showProblem(null);
    } catch (error) {
      if (model === state.model) clearAnswer();
      showProblem(error);
    }
  }
  live.busy = false;
}

function requestAnswer(asked) {
  const parameters = query({ deviation: true, classes: true, draws: COMPLETIONS });
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ rows: [asked] });
  return requestJson(`/v1/impute?${parameters}`, { method: "POST", headers, body });
}

function showAnswer(classes, answer, asked, milliseconds) {
  showBars(classes, answer);
  showVerdict(answer);
  const observed = asked.filter((x) => x !== null).length / asked.length;
  $("observed").textContent = percent(observed, 0);
  $("time").textContent = `${milliseconds} ms`;
  if (state.model.image) showCompletions(answer, asked);
  else showTable(answer, asked);
  const { dataset } = document.body; // for the tests
  dataset.milliseconds = milliseconds;
  dataset.answers = Number(dataset.answers ?? 0) + 1;
}

/** So that no old answer stays beside an error. */
function clearAnswer() {
  clearTimeout(announcement);
  for (const id of ["bars", "table-answer", "draws"]) $(id).replaceChildren();
  for (const id of ["verdict-class", "log-likelihood", "observed", "time"]) {
    $(id).textContent = "–";
  }
  for (const id of ["verdict-p", "spoken"]) $(id).textContent = "";
  for (const id of ["mean", "deviation"]) $(id).width = $(id).height; // empties the canvas
  $("warning").hidden = true;
}

function showBars(classes, answer) {
  const list = $("bars");
  let order = classes.map((_, i) => i);
  if (classes.length > MAX_BARS) {
    order.sort((a, b) => answer.posterior[b] - answer.posterior[a]);
    order = order.slice(0, MAX_BARS);
  }
  while (list.children.length < order.length) list.append(newBar());
  while (list.children.length > order.length) list.lastChild.remove();
  order.forEach((y, i) => {
    const [name, track, share] = list.children[i].children;
    list.children[i].className = classes[y] === answer.class ? "best" : "";
    name.textContent = classes[y];
    track.firstChild.style.transform = `scaleX(${answer.posterior[y]})`;
    share.textContent = percent(answer.posterior[y]);
  });
}

function newBar() {
  const track = element("span", { className: "track" }, element("span", { className: "bar" }));
  const share = element("span", { className: "percent" });
  return element("li", {}, element("span", {}), track, share);
}

let announcement; // a timer

function showVerdict(answer) {
  const best = Math.max(...answer.posterior);
  const { log_likelihood: log } = answer;
  $("verdict-class").textContent = answer.class;
  $("verdict-p").textContent = `probability ${percent(best)}`;
  $("log-likelihood").textContent = log === null ? "−∞" : log.toFixed(1);
  $("warning").hidden = !answer.warning;
  $("warning").textContent = answer.warning ? `This row is ${answer.warning}.` : "";
  clearTimeout(announcement); // screen readers read only the last of many strokes
  announcement = setTimeout(() => {
    $("spoken").textContent = `Most probable: ${answer.class}, ${(100 * best).toFixed(0)} percent`;
  }, 600);
}

function showCompletions(answer, asked) {
  paintImage($("mean"), answer.values, 6);
  paintDeviation(answer.deviation, asked);
  $("deviation-hint").textContent = asked.includes(null)
    ? "Uncertainty (standard deviation)"
    : "Nothing is missing, so there is no uncertainty";
  const list = $("draws");
  while (list.children.length < answer.draws.length) {
    list.append(element("canvas", { ariaLabel: "A random completion", role: "img" }));
  }
  answer.draws.forEach((values, i) => paintImage(list.children[i], values, 4));
}

function paintDeviation(deviation, asked) {
  const { height, width, channels, range: [low, high] } = state.model.image;
  paint($("deviation"), width, height, 6, (at) => {
    if (asked[at * channels] !== null) return colours.paper;
    const heat = clamp((2 * deviation[at * channels]) / (high - low), 0.04, 1);
    return mix(colours.paper, colours.heat, heat);
  });
}

async function loadExamples() {
  const strip = $("examples");
  strip.replaceChildren();
  strip.hidden = state.model.examples === 0;
  if (!state.model.examples) return;
  const { rows } = await requestJson(`/v1/examples?${query({ count: 40 })}`);
  strip.append(...rows.map(exampleButton));
  pick(rows[0].values);
}

function exampleButton({ label, values }, i) {
  const text = label ?? `${i + 1}`;
  const button = element("button", {
    type: "button",
    title: `Example ${i + 1}: ${text}`,
    ariaLabel: `Example ${i + 1}, labelled ${text}`,
  });
  if (state.model.image) {
    const canvas = element("canvas", {});
    paintImage(canvas, values, 2);
    button.append(canvas);
  } else {
    button.textContent = text;
  }
  button.dataset.label = label ?? "";
  button.addEventListener("click", () => pick(values));
  return button;
}

function pick(values) {
  if (state.model.image) {
    newSheet(values);
    if (state.tool === "draw") useTool("erase");
  } else {
    values.forEach((x, i) => ($(`column-${i}`).value = x ?? ""));
  }
  changed();
}

// ---- look inside -------------------------------------------------------------------------------

const look = { seed: 1, level: 0, node: 0, loaded: null };

const NEURONS_HINT = {
  image: "Choose a level, then a node: click the grid or use the arrow keys on it. Each picture is "
    + "the average of samples of the pixels below one channel; the percentage is how often the "
    + "channel is used.",
  table: "Choose a level, then a node. Each table shows three samples of the columns below one "
    + "channel; the percentage is how often the channel is used.",
};

async function openLook() {
  const { model } = state;
  if (look.loaded === model) return;
  look.loaded = model;
  model.trees ??= (await requestJson(`/v1/models/${encodeURIComponent(model.name)}`)).trees;
  if (model !== state.model) return; // another one has been chosen meanwhile
  buildLevels();
  $("neurons-hint").textContent = NEURONS_HINT[model.image ? "image" : "table"];
  await Promise.all([showSamples(), showNode()]);
}

async function showSamples() {
  const parts = await Promise.all(state.model.classes.slice(0, 24).map(samplesOfClass));
  if (state.model.image) {
    $("samples").replaceChildren(...parts);
    return;
  }
  const names = [state.model.target ?? "class", ...columns().map((column) => column.name)];
  const head = element("thead", {}, tableRow(...names.map(columnHead)));
  const table = element("table", {}, head, element("tbody", {}, ...parts.flat()));
  $("samples").replaceChildren(element("div", { className: "scroll" }, table));
}

/** A line of pictures, or rows of a table. */
async function samplesOfClass(name, index) {
  const count = state.model.image ? 6 : 5;
  const parameters = query({ class: name, count, seed: 1000 * look.seed + index });
  const { rows } = await requestJson(`/v1/sample?${parameters}`);
  if (!state.model.image) {
    const cell = (x) => element("td", { textContent: shown(x) });
    return rows.map(({ values }) => tableRow(rowHead(name), ...values.map(cell)));
  }
  const pictures = rows.map(({ values }) => {
    const canvas = element("canvas", { role: "img", ariaLabel: `A sample of ${name}` });
    paintImage(canvas, values, 3);
    return canvas;
  });
  const label = element("strong", { textContent: name });
  return element("div", { className: "class-row" }, label, element("div", {}, ...pictures));
}

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
  const name = l === 0 ? "leaves" : `level ${l}`;
  const nodes = level.nodes === 1 ? "node" : "nodes";
  const text = `${name} · ${level.nodes} ${nodes} · ${level.channels} channels`;
  return element("label", { className: "pick" }, radio, text);
}

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
  $("nodes").hidden = Boolean(boxes);
  if (boxes) paintGrid(boxes);
  else showNodeButtons(state.model.trees[0][look.level].nodes);
}

function showNodeButtons(count) {
  const button = (_, node) => {
    const ariaPressed = node === look.node;
    const made = element("button", { type: "button", textContent: node, ariaPressed });
    made.addEventListener("click", () => chooseNode(node));
    return made;
  };
  $("nodes").replaceChildren(...Array.from({ length: count }, button));
}

function paintGrid(boxes) {
  const { height, width } = state.model.image;
  const scale = Math.max(2, Math.floor(280 / Math.max(height, width)));
  const context = paint($("grid"), width, height, scale, () => colours.paper);
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

async function showNode() {
  showNodes();
  const { level, node, seed } = look;
  const parameters = query({ level, node, channels: 8, count: 24, seed });
  const { rows } = await requestJson(`/v1/explain?${parameters}`);
  if (level !== look.level || node !== look.node) return; // another one has been chosen meanwhile
  $("node-name").textContent = `${level === 0 ? "Leaves" : `Level ${level}`}, node ${node}`;
  const byChannel = new Map();
  for (const sample of rows) {
    if (!byChannel.has(sample.channel)) byChannel.set(sample.channel, []);
    byChannel.get(sample.channel).push(sample);
  }
  $("channels").replaceChildren(...[...byChannel].map(showChannel));
}

function showChannel([channel, samples]) {
  const text = `channel ${channel} · ${percent(samples[0].probability)}`;
  const caption = element("figcaption", { textContent: text });
  const values = samples.map((sample) => sample.values);
  return state.model.image
    ? channelPictures(caption, channel, values)
    : channelTable(caption, values.slice(0, 3));
}

function channelTable(caption, samples) {
  const rows = columns().flatMap(({ name }, i) => {
    if (samples[0][i] === null) return []; // not below this channel
    const cells = samples.map((values) => element("td", { textContent: shown(values[i], 3) }));
    return [tableRow(rowHead(name), ...cells)];
  });
  const table = element("table", {}, element("tbody", {}, ...rows));
  return element("figure", { className: "scroll wide" }, caption, table);
}

/** The average of the samples, and three of them. */
function channelPictures(caption, channel, samples) {
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
  return element("figure", {}, canvas, element("div", { className: "trio" }, ...trio), caption);
}

/** The mean of images, each within the range of the data. */
function averageImage(samples) {
  const [low, high] = [Math.min(...state.model.image.range), Math.max(...state.model.image.range)];
  return samples[0].map((first, i) => {
    if (first === null) return null;
    const sum = samples.reduce((total, values) => total + clamp(values[i], low, high), 0);
    return sum / samples.length;
  });
}

function listenToLook() {
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

// ---- fill a table ------------------------------------------------------------------------------

/** The first rows of a CSV file; quotes as in RFC 4180. */
function parseCsv(text, maxRows) {
  const rows = [];
  let row = [], cell = "", quoted = false;
  for (let i = 0; i < text.length && rows.length < maxRows; i++) {
    const c = text[i];
    if (quoted) {
      if (c === '"' && text[i + 1] === '"') { cell += c; i++; }
      else if (c === '"') quoted = false;
      else cell += c;
    } else if (c === '"') quoted = true;
    else if (c === ",") { row.push(cell); cell = ""; }
    else if (c === "\n") {
      row.push(cell.replace(/\r$/, ""));
      if (row.length > 1 || row[0] !== "") rows.push(row);
      row = []; cell = "";
    } else cell += c;
  }
  if (cell !== "" || row.length) rows.push([...row, cell]);
  return rows.slice(0, maxRows);
}

const PREVIEW_BYTES = 1 << 18;
let downloadUrl;

async function fillFile(file) {
  showProblem(null);
  $("download").hidden = $("preview").hidden = true;
  $("fill-status").textContent = `Filling ${file.name} …`;
  try {
    const how = document.querySelector("[name=how]:checked").value;
    const start = performance.now();
    const headers = { "content-type": "text/csv" };
    const path = `/v1/impute?${query({ how, classes: true })}`;
    const response = await request(path, { method: "POST", headers, body: file });
    const filled = await response.blob();
    offerDownload(filled, `${file.name.replace(/\.[^.]*$/, "")}-filled.csv`);
    const text = await filled.text();
    const count = (text.match(/\n/g) ?? []).length - 1;
    const seconds = ((performance.now() - start) / 1000).toFixed(2);
    $("fill-status").textContent = `${count} ${count === 1 ? "row" : "rows"} in ${seconds} s.`;
    preview(await file.slice(0, PREVIEW_BYTES).text(), text.slice(0, PREVIEW_BYTES));
  } catch (error) {
    $("fill-status").textContent = "";
    showProblem(error);
  }
}

function offerDownload(blob, name) {
  if (downloadUrl) URL.revokeObjectURL(downloadUrl);
  downloadUrl = URL.createObjectURL(blob);
  const textContent = `Download ${name}`;
  Object.assign($("download"), { href: downloadUrl, download: name, hidden: false, textContent });
}

const isHole = (text) =>
  text !== undefined && ["", "na", "nan", "null"].includes(text.trim().toLowerCase());

function preview(before, after) {
  const [old, now] = [parseCsv(before, 9), parseCsv(after, 9)];
  const count = Math.min(30, now[0].length);
  const sameColumns = old[0]?.length > 1 || now[0].length <= 1; // else it has another separator
  const cell = (text, i, j) => element("td", {
    textContent: /^-?\d+\.\d{5,}$/.test(text) ? Number(text).toPrecision(5) : text,
    className: sameColumns && j < old[0].length && isHole(old[i]?.[j]) ? "filled" : "",
  });
  const head = tableRow(...now[0].slice(0, count).map(columnHead));
  const rows = now.slice(1).map((cells, i) =>
    tableRow(...cells.slice(0, count).map((text, j) => cell(text, i + 1, j))));
  const table = $("preview");
  table.replaceChildren(
    table.caption, element("thead", {}, head), element("tbody", {}, ...rows));
  table.hidden = false;
}

function listenToFill() {
  const zone = $("drop-zone");
  const highlight = (on) => (event) => {
    event.preventDefault();
    zone.classList.toggle("over", on);
  };
  for (const name of ["dragenter", "dragover"]) zone.addEventListener(name, highlight(true));
  for (const name of ["dragleave", "drop"]) zone.addEventListener(name, highlight(false));
  zone.addEventListener("drop", (event) => fillFirst(event.dataTransfer.files));
  // A file dropped beside the zone must not replace the page.
  for (const name of ["dragover", "drop"]) {
    window.addEventListener(name, (event) => event.preventDefault());
  }
  $("file").addEventListener("change", () => {
    fillFirst($("file").files);
    $("file").value = ""; // so that the same file can be chosen again
  });
}

function fillFirst(files) {
  if (files[0]) fillFile(files[0]);
}

function showFillHint() {
  const { width, columns: own } = state.model;
  const names = own.slice(0, 12).map((column) => column.name).join(", ");
  const needed = own.length
    ? `The file needs the columns ${names}${own.length > 12 ? ", …" : ""}; others stay as they are.`
    : `The file needs a line of names and ${width} columns, or x0 to x${width - 1} among others.`;
  $("fill-hint").textContent = `Empty cells, NA and NaN are holes. ${needed} `
    + "You get the rows back with their holes filled, and the class of each with its probability.";
}

// ---- models, tabs and colours ------------------------------------------------------------------

async function useModel(name) {
  state.model = state.models.find((model) => model.name === name);
  const { image } = state.model;
  for (const id of ["image-ask", "image-answer", "draws", "draws-hint"]) $(id).hidden = !image;
  $("table-ask").hidden = $("table-answer").hidden = Boolean(image);
  $("tab-erase").textContent = image ? "Erase" : "Predict";
  $("canvas").style.aspectRatio = image ? `${image.width} / ${image.height}` : "";
  if (image) newSheet(blankImage());
  else buildForm();
  showFillHint();
  if (state.view === "look") openLook().catch(showProblem);
  await loadExamples();
  if (!state.model.examples) changed();
}

function useView(view, focus) {
  state.view = view;
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const chosen = tab.id === `tab-${view}`;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
    if (chosen && focus) tab.focus();
    $(tab.getAttribute("aria-controls")).hidden = !chosen;
  }
  if (view === "look") openLook().catch(showProblem);
}

function listenToTabs() {
  const views = ["erase", "look", "fill"];
  views.forEach((view, i) => {
    $(`tab-${view}`).addEventListener("click", () => useView(view));
    $(`tab-${view}`).addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) useView(views[(i + step + views.length) % views.length], true);
    });
  });
}

function listenToShortcuts() {
  document.addEventListener("keydown", (event) => {
    const tool = { d: "draw", e: "erase", r: "restore" }[event.key];
    const typing = event.target.matches(
      "input:not([type=radio], [type=range]), select, textarea");
    const modified = event.ctrlKey || event.metaKey || event.altKey;
    const usable = state.view === "erase" && state.model?.image;
    if (tool && usable && !typing && !modified) useTool(tool);
  });
}

const THEMES = ["auto", "light", "dark"];
const themeChoice = () => localStorage.getItem("theme") ?? "auto";

function listenToTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  $("theme").addEventListener("click", () => {
    localStorage.setItem("theme", THEMES[(THEMES.indexOf(themeChoice()) + 1) % 3]);
    applyTheme(system.matches);
  });
  system.addEventListener("change", () => applyTheme(system.matches));
  applyTheme(system.matches);
}

function applyTheme(systemIsDark) {
  const choice = themeChoice();
  const label = `Colours: ${choice === "auto" ? "system" : choice}`;
  document.documentElement.dataset.theme =
    choice === "auto" ? (systemIsDark ? "dark" : "light") : choice;
  $("theme").setAttribute("aria-label", label);
  $("theme").title = label;
  $("theme").textContent = { auto: "◐", light: "☀", dark: "☾" }[choice];
  readColours();
  if (state.model?.image) repaint();
  else if (state.model) changed();
}

/** Paints everything in the new colours; the image being edited stays as it is. */
function repaint() {
  const { values, erased, order } = sheet;
  const kept = { ...sheet, values: values.slice(), erased: erased.slice(), order: order.slice() };
  const bringBack = () => {
    Object.assign(sheet, kept);
    changed();
  };
  loadExamples().then(bringBack).catch(showProblem);
  look.loaded = null;
  if (state.view === "look") openLook().catch(showProblem);
}

async function start() {
  listenToTheme();
  listenToTabs();
  listenToShortcuts();
  listenToPointer();
  listenToKeys();
  listenToTools();
  listenToLook();
  listenToFill();
  $("table-ask").addEventListener("input", changed);
  $("table-ask").addEventListener("submit", (event) => event.preventDefault());
  ({ models: state.models } = await requestJson("/v1/models"));
  const chooser = $("model");
  const option = ({ name }) => element("option", { value: name, textContent: name });
  chooser.replaceChildren(...state.models.map(option));
  $("model-label").hidden = state.models.length < 2;
  chooser.addEventListener("change", () => useModel(chooser.value).catch(showProblem));
  await useModel(state.models[0].name);
}

start().catch(showProblem);
