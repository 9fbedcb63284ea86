// The page of `sumout serve`: rub out pixels and watch, look inside, fill a table. Plain JavaScript, nothing from elsewhere.

const $ = (id) => document.getElementById(id);
const DRAWS = 4; // sampled completions shown
const state = { models: [], model: null, tool: "rub", view: "rub" };

// ---- asking the service ----------------------------------------------------------------------------------------

async function ask(path, options = {}) {
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
    return ask(path, options);
  }
  if (response.status === 503 || response.status === 429) {
    await new Promise((resolve) => setTimeout(resolve, 300)); // it is busy: a little later
    if ((options.tries ?? 0) < 10) return ask(path, { ...options, tries: (options.tries ?? 0) + 1 });
  }
  if (!response.ok) {
    const text = await response.text();
    let message = text;
    try { message = JSON.parse(text).error; } catch { /* not one of ours */ }
    throw new Error(message);
  }
  return response;
}

const askJson = async (path, options) => (await ask(path, options)).json();

function askForToken() {
  const dialog = $("ask-token");
  $("token").value = "";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => {
    sessionStorage.setItem("token", $("token").value.trim());
    resolve();
  }, { once: true }));
}

function say(error) {
  $("problem").hidden = !error;
  $("problem").textContent = error ? error.message : "";
}

const named = (query) => new URLSearchParams({ model: state.model.name, ...query });

// ---- pictures --------------------------------------------------------------------------------------------------

let colours;

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const rgb = (name) => {
    const hex = style.getPropertyValue(name).trim();
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  };
  colours = { paper: rgb("--paper"), ink: rgb("--ink"), hole: rgb("--hole"), stripe: rgb("--stripe"), heat: rgb("--heat") };
}

const mix = (a, b, t) => a.map((x, i) => x + (b[i] - x) * t);

/** The colour of a pixel: values from `low` to `high`; three channels are red, green and blue. */
function pixelColour(values, at) {
  const { channels, range: [low, high] } = state.model.image;
  const part = (x) => Math.min(1, Math.max(0, (x - low) / (high - low)));
  if (channels === 3) return [0, 1, 2].map((c) => 255 * part(values[at * 3 + c]));
  return mix(colours.paper, colours.ink, part(values[at * channels]));
}

/** Paints colours, one for each pixel, at so many screen pixels each; null is striped. */
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

function paintRow(canvas, values, scale = 4) {
  const { height, width, channels } = state.model.image;
  const gone = (at) => values[at * channels] === null || Number.isNaN(values[at * channels]);
  paint(canvas, width, height, scale, (at) => (gone(at) ? null : pixelColour(values, at)));
}

/** Only the box [top, left, height, width] of an image. */
function paintBox(canvas, values, [top, left, height, width], scale) {
  const { width: whole, channels } = state.model.image;
  paint(canvas, width, height, scale, (at) => {
    const place = (top + Math.floor(at / width)) * whole + left + (at % width);
    return values[place * channels] === null ? null : pixelColour(values, place);
  });
}

// ---- rub out: the image ----------------------------------------------------------------------------------------

const sheet = { values: [], gone: [], order: [], cursor: [0, 0], showCursor: false };

function newSheet(values) {
  const { height, width } = state.model.image;
  const count = height * width;
  sheet.values = values.slice();
  sheet.gone = new Array(count).fill(false);
  sheet.order = Array.from({ length: count }, () => 100 * Math.random()); // lost at random below the slider
  sheet.cursor = [Math.floor(height / 2), Math.floor(width / 2)];
}

const isGone = (at) => sheet.gone[at] || sheet.order[at] < Number($("drop").value);

/** The row as the service wants it: null for what is missing. */
function observedRow() {
  const { channels } = state.model.image;
  return sheet.values.map((x, i) => (isGone(Math.floor(i / channels)) ? null : x));
}

function paintSheet() {
  const { height, width } = state.model.image;
  const scale = 12;
  const context = paint($("canvas"), width, height, scale, (at) => (isGone(at) ? null : pixelColour(sheet.values, at)));
  if (sheet.showCursor) {
    const [y, x] = sheet.cursor;
    context.strokeStyle = `rgb(${colours.heat.join()})`;
    context.lineWidth = 3;
    context.beginPath();
    context.arc((x + 0.5) * scale, (y + 0.5) * scale, radius() * scale, 0, 2 * Math.PI);
    context.stroke();
  }
}

const radius = () => Number($("brush").value) * (state.tool === "draw" ? 0.35 : 0.6);

/** Uses the tool at a place, in pixels. */
function touch(y, x) {
  const { height, width, channels, range: [low, high] } = state.model.image;
  const r = radius();
  for (let row = Math.max(0, Math.floor(y - r - 1)); row <= Math.min(height - 1, y + r + 1); row++) {
    for (let column = Math.max(0, Math.floor(x - r - 1)); column <= Math.min(width - 1, x + r + 1); column++) {
      const distance = Math.hypot(row + 0.5 - y, column + 0.5 - x);
      const at = row * width + column;
      if (state.tool === "draw") {
        const ink = Math.min(1, Math.max(0, r + 0.7 - distance));
        if (ink === 0) continue;
        if (isGone(at)) sheet.values.fill(low, at * channels, (at + 1) * channels);
        restore(at);
        for (let c = 0; c < channels; c++) {
          sheet.values[at * channels + c] = Math.max(sheet.values[at * channels + c], low + ink * (high - low));
        }
      } else if (distance <= r + 0.2) {
        if (state.tool === "rub") sheet.gone[at] = true;
        else restore(at);
      }
    }
  }
}

function restore(at) {
  sheet.gone[at] = false;
  sheet.order[at] = 101; // the slider does not take it again
}

function listenToSheet() {
  const canvas = $("canvas");
  let last = null;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    const { height, width } = state.model.image;
    return [((event.clientY - box.top) / box.height) * height, ((event.clientX - box.left) / box.width) * width];
  };
  const stroke = (event) => {
    for (const point of event.getCoalescedEvents?.().length ? event.getCoalescedEvents() : [event]) {
      const to = place(point);
      const steps = Math.max(1, Math.ceil(2 * Math.hypot(to[0] - last[0], to[1] - last[1])));
      for (let i = 1; i <= steps; i++) {
        touch(last[0] + ((to[0] - last[0]) * i) / steps, last[1] + ((to[1] - last[1]) * i) / steps);
      }
      last = to;
    }
    changed();
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    sheet.showCursor = false;
    last = place(event);
    stroke(event);
  });
  canvas.addEventListener("pointermove", (event) => last && stroke(event));
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (last = null));
  canvas.addEventListener("keydown", (event) => {
    const { height, width } = state.model.image;
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (move) {
      sheet.cursor = [
        Math.min(height - 1, Math.max(0, sheet.cursor[0] + move[0])),
        Math.min(width - 1, Math.max(0, sheet.cursor[1] + move[1])),
      ];
    } else if (event.key === " " || event.key === "Enter") {
      touch(sheet.cursor[0] + 0.5, sheet.cursor[1] + 0.5);
      changed();
    } else {
      return;
    }
    event.preventDefault();
    sheet.showCursor = true;
    paintSheet();
  });
  canvas.addEventListener("blur", () => { sheet.showCursor = false; if (state.model?.image) paintSheet(); });
  $("square").addEventListener("click", () => {
    const { height, width } = state.model.image;
    const side = Math.max(1, Math.round(Math.min(height, width) * 0.32));
    const top = Math.floor(Math.random() * (height - side + 1));
    const left = Math.floor(Math.random() * (width - side + 1));
    for (let i = 0; i < side * side; i++) sheet.gone[(top + Math.floor(i / side)) * width + left + (i % side)] = true;
    changed();
  });
  $("uncover").addEventListener("click", () => { $("drop").value = 0; newSheet(sheet.values); changed(); });
  $("blank").addEventListener("click", () => {
    $("drop").value = 0;
    newSheet(new Array(state.model.width).fill(state.model.image.range[0]));
    useTool("draw");
    changed();
  });
  $("drop").addEventListener("input", changed);
  $("brush").addEventListener("input", showSliders);
  for (const radio of document.querySelectorAll("[name=tool]")) radio.addEventListener("change", () => useTool(radio.value));
}

function useTool(tool) {
  state.tool = tool;
  document.querySelector(`[name=tool][value=${tool}]`).checked = true;
}

function showSliders() {
  $("brush-out").textContent = $("brush").value;
  $("drop-out").textContent = `${$("drop").value} %`;
}

// ---- rub out: the form of a table ------------------------------------------------------------------------------

function buildForm() {
  const form = $("table-ask");
  form.replaceChildren(element("p", { className: "hint", textContent: "Leave blank what you do not know." }));
  columns().forEach((column, i) => {
    const label = element("label", { textContent: column.name, htmlFor: `column-${i}` });
    let input;
    if (column.categories) {
      input = element("select", {}, element("option", { value: "", textContent: "" }),
        ...column.categories.map((name) => element("option", { value: name, textContent: name })));
    } else {
      input = element("input", { type: "number", step: "any", placeholder: "missing" });
    }
    input.id = `column-${i}`;
    form.append(label, input);
  });
}

const columns = () => state.model.columns.length
  ? state.model.columns
  : Array.from({ length: state.model.width }, (_, i) => ({ name: `x${i}`, categories: null }));

function formRow() {
  return columns().map((column, i) => {
    const text = $(`column-${i}`).value;
    if (text === "") return null;
    return column.categories ? text : Number(text);
  });
}

function showTable(answer, row) {
  const shown = (x) => (typeof x === "number" ? Number(x.toPrecision(4)).toString() : x ?? "");
  const head = ["", "value", "±", ...answer.draws.map((_, i) => `draw ${i + 1}`)];
  const rows = columns().map((column, i) => {
    const filled = row[i] === null;
    const cells = [answer.values[i], filled && !column.categories ? answer.deviation[i] : null, ...answer.draws.map((d) => (filled ? d[i] : null))];
    return element("tr", {}, element("th", { textContent: column.name, scope: "row" }),
      ...cells.map((x, at) => element("td", { textContent: shown(x), className: filled && at === 0 ? "filled" : "" })));
  });
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...head.map((name) => element("th", { textContent: name, scope: "col" })))),
    element("tbody", {}, ...rows));
  $("table-answer").replaceChildren(table);
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// ---- rub out: the answer ---------------------------------------------------------------------------------------

const live = { dirty: false, busy: false, since: 0 };

/** Something has been rubbed out or put back. At most one question is under way; the latest wins. */
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
    const since = live.since;
    const model = state.model;
    const row = model.image ? observedRow() : formRow();
    try {
      const path = `/v1/impute?${named({ deviation: true, classes: true, draws: DRAWS })}`;
      const body = JSON.stringify({ rows: [row] });
      const { classes, rows: [answer] } = await askJson(path, { method: "POST", headers: { "content-type": "application/json" }, body });
      if (model !== state.model) continue;
      showBars(classes, answer);
      const seen = row.filter((x) => x !== null).length;
      $("observed").textContent = `${Math.round((100 * seen) / row.length)} %`;
      $("time").textContent = `${Math.round(performance.now() - since)} ms`;
      document.body.dataset.milliseconds = Math.round(performance.now() - since);
      document.body.dataset.answers = Number(document.body.dataset.answers ?? 0) + 1;
      if (model.image) showCompletions(answer, row);
      else showTable(answer, row);
      say(null);
    } catch (error) {
      if (model === state.model) forget();
      say(error);
    }
  }
  live.busy = false;
}

/** What was answered before does not stay beside an error. */
function forget() {
  clearTimeout(spoken);
  for (const id of ["bars", "table-answer", "draws"]) $(id).replaceChildren();
  for (const id of ["verdict-class", "log-likelihood", "observed", "time"]) $(id).textContent = "–";
  for (const id of ["verdict-p", "spoken"]) $(id).textContent = "";
  for (const id of ["mean", "deviation"]) $(id).width = $(id).height; // which empties a canvas
  $("warning").hidden = true;
}

let spoken;

function showBars(classes, answer) {
  const list = $("bars");
  const most = 12;
  let order = classes.map((_, i) => i);
  if (classes.length > most) order = order.sort((a, b) => answer.posterior[b] - answer.posterior[a]).slice(0, most);
  while (list.children.length < order.length) {
    list.append(element("li", {}, element("span", {}), element("span", { className: "track" }, element("span", { className: "bar" })),
      element("span", { className: "percent" })));
  }
  while (list.children.length > order.length) list.lastChild.remove();
  order.forEach((y, i) => {
    const [name, track, percent] = list.children[i].children;
    const p = answer.posterior[y];
    list.children[i].className = classes[y] === answer.class ? "best" : "";
    name.textContent = classes[y];
    track.firstChild.style.transform = `scaleX(${p})`;
    percent.textContent = `${(100 * p).toFixed(1)} %`;
  });
  const best = Math.max(...answer.posterior);
  $("verdict-class").textContent = answer.class;
  $("verdict-p").textContent = `with ${(100 * best).toFixed(1)} %`;
  $("log-likelihood").textContent = answer.log_likelihood === null ? "−∞" : answer.log_likelihood.toFixed(1);
  $("warning").hidden = !answer.warning;
  $("warning").textContent = answer.warning ? `This row is ${answer.warning}.` : "";
  clearTimeout(spoken); // screen readers hear the last of many strokes
  spoken = setTimeout(() => ($("spoken").textContent = `Most probable: ${answer.class}, ${(100 * best).toFixed(0)} percent`), 600);
}

function showCompletions(answer, row) {
  const { height, width, channels, range: [low, high] } = state.model.image;
  paintRow($("mean"), answer.values, 6);
  paint($("deviation"), width, height, 6, (at) => {
    const unsure = Math.min(1, (2 * answer.deviation[at * channels]) / (high - low));
    return mix(colours.paper, colours.heat, row[at * channels] === null ? Math.max(0.04, unsure) : 0);
  });
  $("deviation-hint").textContent = row.includes(null) ? "How unsure it is" : "Nothing is missing, so it is not unsure of anything";
  const list = $("draws");
  while (list.children.length < answer.draws.length) {
    list.append(element("canvas", { ariaLabel: "A completion drawn at random", role: "img" }));
  }
  answer.draws.forEach((draw, i) => paintRow(list.children[i], draw, 4));
}

async function loadExamples() {
  const strip = $("examples");
  strip.replaceChildren();
  strip.hidden = state.model.examples === 0;
  if (!state.model.examples) return;
  const { rows } = await askJson(`/v1/examples?${named({ count: 40 })}`);
  rows.forEach((row, i) => {
    const text = row.label ?? `${i + 1}`;
    const button = element("button", { type: "button", title: `Example ${i + 1}: ${text}`, ariaLabel: `Example ${i + 1}, labelled ${text}` });
    if (state.model.image) {
      const canvas = element("canvas", {});
      paintRow(canvas, row.values, 2);
      button.append(canvas);
    } else {
      button.textContent = text;
    }
    button.dataset.label = row.label ?? "";
    button.addEventListener("click", () => pick(row.values));
    strip.append(button);
  });
  pick(rows[0].values);
}

function pick(values) {
  if (state.model.image) {
    newSheet(values);
    if (state.tool === "draw") useTool("rub");
  } else {
    values.forEach((x, i) => ($(`column-${i}`).value = x ?? ""));
  }
  changed();
}

// ---- look inside -----------------------------------------------------------------------------------------------

const look = { seed: 1, level: 0, node: 0, loaded: null };

async function openLook() {
  if (look.loaded === state.model) return;
  look.loaded = state.model;
  const trees = state.model.trees ?? (await askJson(`/v1/models/${encodeURIComponent(state.model.name)}`)).trees;
  state.model.trees = trees;
  buildLevels();
  $("neurons-hint").textContent = state.model.image
    ? "Choose a level, then click a place (or use the arrow keys on it). Each picture is the average of draws of what lies below one channel; the percentage says how often that channel is used."
    : "Choose a level, then a place. Each table shows three draws of what lies below one channel; the percentage says how often that channel is used.";
  await Promise.all([drawSamples(), showNode()]);
}

async function drawSamples() {
  const count = state.model.image ? 6 : 5;
  const rows = await Promise.all(state.model.classes.slice(0, 24).map(async (name, index) => {
    const { rows } = await askJson(`/v1/sample?${named({ class: name, count, seed: 1000 * look.seed + index })}`);
    if (!state.model.image) {
      const cells = (row) => row.values.map((x) => element("td", { textContent: typeof x === "number" ? Number(x.toPrecision(4)) : x ?? "" }));
      return rows.map((row) => element("tr", {}, element("th", { textContent: name, scope: "row" }), ...cells(row)));
    }
    const pictures = rows.map((row) => {
      const canvas = element("canvas", { role: "img", ariaLabel: `A sample of ${name}` });
      paintRow(canvas, row.values, 3);
      return canvas;
    });
    return element("div", { className: "class-row" }, element("strong", { textContent: name }), element("div", {}, ...pictures));
  }));
  if (state.model.image) {
    $("samples").replaceChildren(...rows);
  } else {
    const head = element("tr", {}, element("th", { textContent: state.model.target ?? "class" }), ...columns().map((c) => element("th", { textContent: c.name, scope: "col" })));
    $("samples").replaceChildren(element("div", { className: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows.flat()))));
  }
}

function buildLevels() {
  const levels = state.model.trees[0];
  look.level = Math.min(levels.length - 1, 2);
  look.node = middle(levels[look.level]);
  $("levels").replaceChildren(...levels.map((level, l) => {
    const radio = element("input", { type: "radio", name: "level", value: l, checked: l === look.level });
    radio.addEventListener("change", () => {
      look.level = l;
      look.node = middle(level);
      showNode().catch(say);
    });
    const name = l === 0 ? "leaves" : `level ${l}`;
    const plural = level.nodes === 1 ? "place" : "places";
    return element("label", { className: "pick" }, radio, `${name} · ${level.nodes} ${plural} · ${level.channels} channels`);
  }));
}

/** The place that holds the middle of the image; the first one of a table. */
function middle({ boxes }) {
  const [y, x] = [state.model.image?.height / 2, state.model.image?.width / 2];
  return Math.max(0, boxes?.findIndex((box) => box && y >= box[0] && y < box[0] + box[2] && x >= box[1] && x < box[1] + box[3]) ?? 0);
}

const boxesOf = () => state.model.trees[0][look.level].boxes;

function paintGrid() {
  const boxes = boxesOf();
  $("grid").hidden = !boxes;
  $("nodes").hidden = Boolean(boxes);
  if (!boxes) {
    const count = state.model.trees[0][look.level].nodes;
    $("nodes").replaceChildren(...Array.from({ length: count }, (_, node) => {
      const button = element("button", { type: "button", textContent: node, ariaPressed: node === look.node });
      button.addEventListener("click", () => { look.node = node; showNode().catch(say); });
      return button;
    }));
    return;
  }
  const { height, width } = state.model.image;
  const canvas = $("grid");
  const scale = Math.max(2, Math.floor(280 / Math.max(height, width)));
  const context = paint(canvas, width, height, scale, () => colours.paper);
  context.lineWidth = 1;
  context.strokeStyle = `rgb(${colours.stripe.join()})`;
  for (const box of boxes) if (box) context.strokeRect(box[1] * scale + 0.5, box[0] * scale + 0.5, box[3] * scale - 1, box[2] * scale - 1);
  const box = boxes[look.node];
  if (!box) return;
  context.fillStyle = `rgba(${colours.heat.join()}, 0.25)`;
  context.strokeStyle = `rgb(${colours.heat.join()})`;
  context.lineWidth = 3;
  context.fillRect(box[1] * scale, box[0] * scale, box[3] * scale, box[2] * scale);
  context.strokeRect(box[1] * scale + 1.5, box[0] * scale + 1.5, box[3] * scale - 3, box[2] * scale - 3);
}

async function showNode() {
  paintGrid();
  const wanted = `${look.level}/${look.node}`;
  const { rows } = await askJson(`/v1/explain?${named({ level: look.level, node: look.node, channels: 8, count: 24, seed: look.seed })}`);
  if (wanted !== `${look.level}/${look.node}`) return; // another one has been chosen meanwhile
  $("node-name").textContent = `${look.level === 0 ? "Leaves" : `Level ${look.level}`}, place ${look.node}`;
  const byChannel = new Map();
  for (const row of rows) byChannel.set(row.channel, [...(byChannel.get(row.channel) ?? []), row]);
  const box = boxesOf()?.[look.node];
  $("channels").replaceChildren(...[...byChannel].map(([channel, draws]) => showChannel(channel, draws, box)));
}

function showChannel(channel, draws, box) {
  const share = `${(100 * draws[0].probability).toFixed(1)} %`;
  const caption = element("figcaption", { textContent: `channel ${channel} · ${share}` });
  if (!state.model.image) {
    const below = columns().map((column, i) => [column.name, draws.slice(0, 3).map((draw) => draw.values[i])]).filter(([, xs]) => xs[0] !== null);
    const text = (x) => (typeof x === "number" ? Number(x.toPrecision(3)) : x);
    const rows = below.map(([name, xs]) => element("tr", {}, element("th", { textContent: name }), ...xs.map((x) => element("td", { textContent: text(x) }))));
    return element("figure", { className: "scroll wide" }, caption, element("table", {}, element("tbody", {}, ...rows)));
  }
  const area = box ?? [0, 0, state.model.image.height, state.model.image.width];
  const scale = Math.max(2, Math.floor(132 / Math.max(area[2], area[3])));
  const clamp = (x) => (x === null ? null : Math.min(Math.max(...state.model.image.range), Math.max(Math.min(...state.model.image.range), x)));
  const average = draws[0].values.map((_, i) => (draws[0].values[i] === null ? null : draws.reduce((sum, draw) => sum + clamp(draw.values[i]), 0) / draws.length));
  const canvas = element("canvas", { role: "img", ariaLabel: `Average of draws below channel ${channel}` });
  paintBox(canvas, average, area, scale);
  const trio = draws.slice(0, 3).map((draw) => {
    const small = element("canvas", { role: "img", ariaLabel: "A draw" });
    paintBox(small, draw.values, area, Math.max(1, Math.floor(scale / 3)));
    return small;
  });
  return element("figure", {}, canvas, element("div", { className: "trio" }, ...trio), caption);
}

function listenToLook() {
  $("again").addEventListener("click", () => { look.seed += 1; drawSamples().catch(say); });
  const grid = $("grid");
  grid.addEventListener("click", (event) => {
    const rect = grid.getBoundingClientRect();
    const { height, width } = state.model.image;
    const [y, x] = [((event.clientY - rect.top) / rect.height) * height, ((event.clientX - rect.left) / rect.width) * width];
    const node = boxesOf().findIndex((box) => box && y >= box[0] && y < box[0] + box[2] && x >= box[1] && x < box[1] + box[3]);
    if (node >= 0) { look.node = node; showNode().catch(say); }
  });
  grid.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    const boxes = boxesOf();
    const centre = (box) => [box[0] + box[2] / 2, box[1] + box[3] / 2];
    const here = boxes[look.node] ? centre(boxes[look.node]) : [0, 0];
    let best = null;
    boxes.forEach((box, node) => {
      if (!box || node === look.node) return;
      const [dy, dx] = [centre(box)[0] - here[0], centre(box)[1] - here[1]];
      const along = dy * move[0] + dx * move[1];
      const aside = Math.abs(dy * move[1]) + Math.abs(dx * move[0]);
      if (along > 0 && (!best || along + 3 * aside < best.cost)) best = { node, cost: along + 3 * aside };
    });
    if (best) { look.node = best.node; showNode().catch(say); }
  });
}

// ---- fill a table ----------------------------------------------------------------------------------------------

/** Rows of cells; quotes as in RFC 4180. At most so many rows are looked at. */
function parseCsv(text, most) {
  const rows = [];
  let row = [], cell = "", quoted = false;
  for (let i = 0; i < text.length && rows.length < most; i++) {
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
  return rows.slice(0, most);
}

let lastUrl;

async function fillFile(file) {
  say(null);
  $("download").hidden = $("preview").hidden = true;
  $("fill-status").textContent = `Filling ${file.name} …`;
  try {
    const how = document.querySelector("[name=how]:checked").value;
    const start = performance.now();
    const response = await ask(`/v1/impute?${named({ how, classes: true })}`, { method: "POST", headers: { "content-type": "text/csv" }, body: file });
    const filled = await response.blob();
    if (lastUrl) URL.revokeObjectURL(lastUrl);
    lastUrl = URL.createObjectURL(filled);
    const name = file.name.replace(/\.[^.]*$/, "");
    Object.assign($("download"), { href: lastUrl, download: `${name}-filled.csv`, hidden: false, textContent: `Download ${name}-filled.csv` });
    const text = await filled.text();
    const lines = (text.match(/\n/g) ?? []).length - 1;
    $("fill-status").textContent = `${lines} ${lines === 1 ? "row" : "rows"} in ${((performance.now() - start) / 1000).toFixed(2)} s.`;
    preview(await file.slice(0, 1 << 18).text(), text.slice(0, 1 << 18));
  } catch (error) {
    $("fill-status").textContent = "";
    say(error);
  }
}

function preview(before, after) {
  const [old, now] = [parseCsv(before, 9), parseCsv(after, 9)];
  const shown = Math.min(30, now[0].length);
  const isHole = (text) => text !== undefined && ["", "na", "nan", "null"].includes(text.trim().toLowerCase());
  const same = old[0]?.length > 1 || now[0].length <= 1; // another separator: nothing can be marked
  const cells = (row, i) => row.slice(0, shown).map((text, j) => element("td", {
    textContent: /^-?\d+\.\d{5,}$/.test(text) ? Number(text).toPrecision(5) : text,
    className: same && i > 0 && j < old[0].length && isHole(old[i]?.[j]) ? "filled" : "",
  }));
  const head = element("tr", {}, ...now[0].slice(0, shown).map((name) => element("th", { textContent: name, scope: "col" })));
  const table = $("preview");
  table.replaceChildren(table.caption, element("thead", {}, head),
    element("tbody", {}, ...now.slice(1).map((row, i) => element("tr", {}, ...cells(row, i + 1)))));
  table.hidden = false;
}

function listenToFill() {
  const zone = $("drop-zone");
  const over = (on) => (event) => { event.preventDefault(); zone.classList.toggle("over", on); };
  for (const name of ["dragenter", "dragover"]) zone.addEventListener(name, over(true));
  zone.addEventListener("dragleave", over(false));
  zone.addEventListener("drop", (event) => {
    over(false)(event);
    if (event.dataTransfer.files[0]) fillFile(event.dataTransfer.files[0]);
  });
  // A file dropped beside the zone must not replace the page.
  for (const name of ["dragover", "drop"]) window.addEventListener(name, (event) => event.preventDefault());
  $("file").addEventListener("change", () => { if ($("file").files[0]) fillFile($("file").files[0]); $("file").value = ""; });
}

function showFillHint() {
  const { width, columns: own } = state.model;
  const wanted = own.length ? `It must have the columns ${own.slice(0, 12).map((c) => c.name).join(", ")}${own.length > 12 ? ", …" : ""}; others come back as they are.`
    : `It must have a line of names and ${width} columns, or columns x0 to x${width - 1} among others.`;
  $("fill-hint").textContent = `Empty cells, NA and NaN are holes. ${wanted} Back come the rows with holes filled, their class and its probability.`;
}

// ---- the whole -------------------------------------------------------------------------------------------------

async function useModel(name) {
  state.model = state.models.find((model) => model.name === name);
  const image = Boolean(state.model.image);
  for (const id of ["image-ask", "image-answer", "draws", "draws-hint"]) $(id).hidden = !image;
  $("table-ask").hidden = $("table-answer").hidden = image;
  $("tab-rub").textContent = image ? "Rub out" : "Ask";
  $("canvas").style.aspectRatio = image ? `${state.model.image.width} / ${state.model.image.height}` : "";
  if (image) newSheet(new Array(state.model.width).fill(state.model.image.range[0]));
  else buildForm();
  showFillHint();
  if (state.view === "look") openLook().catch(say);
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
    $(tab.id.slice(4)).hidden = !chosen;
  }
  if (view === "look") openLook().catch(say);
}

function listenToTabs() {
  const views = ["rub", "look", "fill"];
  for (const view of views) {
    $(`tab-${view}`).addEventListener("click", () => useView(view));
    $(`tab-${view}`).addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) useView(views[(views.indexOf(view) + step + views.length) % views.length], true);
    });
  }
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input:not([type=radio], [type=range]), select, textarea");
    const tool = { d: "draw", r: "rub", e: "restore" }[event.key];
    if (tool && !typing && !event.ctrlKey && !event.metaKey && !event.altKey && state.view === "rub" && state.model?.image) useTool(tool);
  });
}

function listenToTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const names = { auto: "as the system has them", light: "light", dark: "dark" };
  const apply = () => {
    const choice = localStorage.getItem("theme") ?? "auto";
    document.documentElement.dataset.theme = choice === "auto" ? (system.matches ? "dark" : "light") : choice;
    $("theme").setAttribute("aria-label", `Colours: ${names[choice]}`);
    $("theme").title = `Colours: ${names[choice]}`;
    $("theme").textContent = { auto: "◐", light: "☀", dark: "☾" }[choice];
    readColours();
    if (!state.model) return;
    if (state.model.image) loadExamplesAgain();
    else changed();
  };
  $("theme").addEventListener("click", () => {
    const order = ["auto", "light", "dark"];
    localStorage.setItem("theme", order[(order.indexOf(localStorage.getItem("theme") ?? "auto") + 1) % 3]);
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}

/** Everything is painted in the new colours; the sheet stays as it is. */
function loadExamplesAgain() {
  const kept = { ...sheet, values: sheet.values.slice(), gone: sheet.gone.slice(), order: sheet.order.slice() };
  loadExamples().then(() => { Object.assign(sheet, kept); changed(); }).catch(say);
  look.loaded = null;
  if (state.view === "look") openLook().catch(say);
}

async function start() {
  listenToTheme();
  listenToTabs();
  listenToSheet();
  listenToLook();
  listenToFill();
  $("table-ask").addEventListener("input", changed);
  $("table-ask").addEventListener("submit", (event) => event.preventDefault());
  ({ models: state.models } = await askJson("/v1/models"));
  const chooser = $("model");
  chooser.replaceChildren(...state.models.map((model) => element("option", { value: model.name, textContent: model.name })));
  $("model-label").hidden = state.models.length < 2;
  chooser.addEventListener("change", () => useModel(chooser.value).catch(say));
  await useModel(state.models[0].name);
}

start().catch(say);
