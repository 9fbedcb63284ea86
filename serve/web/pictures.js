// Pictures: observed pixels are ink, missing pixels are striped, pixels from the model are tinted.

import { clamp } from "./elements.js";
import { state } from "./service.js";

export let colours;

/** The colours of the style, as [red, green, blue]. */
export function readColours() {
  const probe = document.body.appendChild(document.createElement("i"));
  const rgb = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color.match(/\d+/g).slice(0, 3).map(Number);
  };
  const names = ["paper", "ink", "model", "hole", "stripe", "heat"];
  colours = Object.fromEntries(names.map((name) => [name, rgb(name)]));
  probe.remove();
}

/** Paints every picture again, in the colours as they are now. */
export function repaint() {
  for (const canvas of document.querySelectorAll("canvas")) canvas.repaint?.();
}

export const css = (colour) => `rgb(${colour.join()})`;
export const mix = (a, b, t) => a.map((x, i) => x + (b[i] - x) * t);

/** The colour of a pixel: values from `low` to `high`; three channels are red, green and blue. */
export function pixelColour(values, at, ink = colours.ink) {
  const { channels, range: [low, high] } = state.model.image;
  const part = (x) => clamp((x - low) / (high - low), 0, 1);
  if (channels === 3) return [0, 1, 2].map((c) => 255 * part(values[at * 3 + c]));
  return mix(colours.paper, ink, part(values[at * channels]));
}

/** Paints each pixel as a square of `scale` screen pixels; striped where its colour is null. */
export function paint(canvas, width, height, scale, colourOf) {
  canvas.repaint = () => paint(canvas, width, height, scale, colourOf);
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

/** Screen pixels for each pixel of an image, so that about so many are painted. */
export const scaleFor = (size, side) => Math.max(1, Math.round(size / side));

/** An image; `asked` is the row that was completed, null where the model filled it. */
export function paintImage(canvas, values, size, asked) {
  const { height, width, channels } = state.model.image;
  const inkOf = (at) => (asked && asked[at * channels] === null ? colours.model : colours.ink);
  const colourOf = (at) => pixelColour(values, at, inkOf(at));
  paint(canvas, width, height, scaleFor(size, Math.max(height, width)), colourOf);
}

/** A part of an image that the model drew: the box [top, left, height, width]. */
export function paintBox(canvas, values, [top, left, height, width], scale) {
  const { width: whole, channels } = state.model.image;
  paint(canvas, width, height, scale, (at) => {
    const place = (top + Math.floor(at / width)) * whole + left + (at % width);
    return values[place * channels] === null ? null : pixelColour(values, place, colours.model);
  });
}

/** Where in the image a pointer is, [y, x] in pixels. */
export function imagePoint(canvas, event) {
  const box = canvas.getBoundingClientRect();
  const { height, width } = state.model.image;
  return [
    ((event.clientY - box.top) / box.height) * height,
    ((event.clientX - box.left) / box.width) * width,
  ];
}
