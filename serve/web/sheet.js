// The image that is edited: erase, restore and draw, by pointer and by keys.

import { $, ARROWS, clamp } from "./elements.js";
import { colours, css, imagePoint, paint, pixelColour, scaleFor } from "./pictures.js";
import { state } from "./service.js";

const RESTORED = 101; // an order the slider, which ends at 95, never reaches
const SQUARE = 0.36; // of the image's smaller side

const sheet = {
  tool: "erase",
  values: [],
  erased: [], // by the user, one for each pixel
  order: [], // from 0 to 100: pixels below the slider's value are missing
  cursor: [0, 0],
  showCursor: false,
};
let onChange; // called when the row is another one

/** A new image, with nothing missing. */
function useValues(values) {
  const { height, width } = state.model.image;
  const count = height * width;
  $("drop").value = 0;
  sheet.values = values.slice();
  sheet.erased = new Array(count).fill(false);
  sheet.order = Array.from({ length: count }, () => 100 * Math.random());
  sheet.cursor = [Math.floor(height / 2), Math.floor(width / 2)];
}

/** Shows an image with nothing missing. */
export function startSheet(values) {
  useValues(values);
  if (sheet.tool === "draw") useTool("erase");
  touched();
}

/** Shows an image with a hole in its middle; without an image, all of it is missing. */
export function openSheet(values) {
  useValues(values ?? blankImage());
  if (values) eraseSquare(0.5, 0.5);
  else sheet.erased.fill(true);
  useTool("erase");
  touched();
}

const blankImage = () => new Array(state.model.width).fill(state.model.image.range[0]);
const isMissing = (at) => sheet.erased[at] || sheet.order[at] < Number($("drop").value);

function erase(at) {
  sheet.erased[at] = true;
}

function restore(at) {
  sheet.erased[at] = false;
  sheet.order[at] = RESTORED;
}

/** The row for the service: null is missing. */
export function sheetRow() {
  const { channels } = state.model.image;
  return sheet.values.map((x, i) => (isMissing(Math.floor(i / channels)) ? null : x));
}

/** The image has changed. */
function touched() {
  showSliders();
  paintSheet();
  onChange();
}

function paintSheet() {
  const { height, width } = state.model.image;
  const scale = Math.max(3, scaleFor(448, Math.max(height, width)));
  const context = paint($("canvas"), width, height, scale, (at) =>
    isMissing(at) ? null : pixelColour(sheet.values, at));
  $("canvas").repaint = paintSheet;
  if (!sheet.showCursor) return;
  const [y, x] = sheet.cursor;
  context.strokeStyle = css(colours.heat);
  context.lineWidth = 3;
  context.beginPath();
  context.arc((x + 0.5) * scale, (y + 0.5) * scale, brushRadius() * scale, 0, 2 * Math.PI);
  context.stroke();
}

/** A brush is as wide in an image of 64 pixels as in one of 28. */
function brushRadius() {
  const { height, width } = state.model.image;
  const zoom = Math.max(1, Math.max(height, width) / 28);
  return Number($("brush").value) * zoom * (sheet.tool === "draw" ? 0.35 : 0.6);
}

/** Uses the tool at a point, in pixels. */
function applyTool(y, x) {
  const { height, width } = state.model.image;
  const r = brushRadius();
  const [bottom, right] = [Math.min(height - 1, y + r + 1), Math.min(width - 1, x + r + 1)];
  for (let row = Math.max(0, Math.floor(y - r - 1)); row <= bottom; row++) {
    for (let column = Math.max(0, Math.floor(x - r - 1)); column <= right; column++) {
      const distance = Math.hypot(row + 0.5 - y, column + 0.5 - x);
      const at = row * width + column;
      if (sheet.tool === "draw") drawPixel(at, clamp(r + 0.7 - distance, 0, 1));
      else if (distance <= r + 0.2) (sheet.tool === "erase" ? erase : restore)(at);
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
  touched();
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
    const applies = event.key === " " || event.key === "Enter";
    if (!move && !applies) return;
    event.preventDefault();
    sheet.showCursor = true;
    if (move) {
      moveCursor(move);
      paintSheet();
    } else {
      applyTool(sheet.cursor[0] + 0.5, sheet.cursor[1] + 0.5);
      touched();
    }
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
  $("square").addEventListener("click", () => {
    eraseSquare(Math.random(), Math.random());
    touched();
  });
  $("restore-all").addEventListener("click", () => startSheet(sheet.values));
  $("blank").addEventListener("click", () => {
    startSheet(blankImage());
    useTool("draw");
  });
  $("drop").addEventListener("input", touched);
  $("brush").addEventListener("input", showSliders);
  for (const radio of document.querySelectorAll("[name=tool]")) {
    radio.addEventListener("change", () => useTool(radio.value));
  }
}

/** At a place from 0, the top or left, to 1. */
function eraseSquare(down, across) {
  const { height, width } = state.model.image;
  const side = Math.max(1, Math.round(Math.min(height, width) * SQUARE));
  const top = Math.round(down * (height - side));
  const left = Math.round(across * (width - side));
  for (let y = top; y < top + side; y++) {
    sheet.erased.fill(true, y * width + left, y * width + left + side);
  }
}

export function useTool(tool) {
  sheet.tool = tool;
  document.querySelector(`[name=tool][value=${tool}]`).checked = true;
}

function showSliders() {
  $("brush-out").textContent = $("brush").value;
  $("drop-out").textContent = `${$("drop").value} %`;
}

export function listenToSheet(changed) {
  onChange = changed;
  listenToPointer();
  listenToKeys();
  listenToTools();
}
