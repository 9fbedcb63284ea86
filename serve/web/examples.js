// Rows to try.

import { $, element } from "./elements.js";
import { openForm, startForm } from "./form.js";
import { paintImage } from "./pictures.js";
import { query, requestJson, state } from "./service.js";
import { openSheet, startSheet } from "./sheet.js";

const COUNT = 40;

/** Shows the examples, and opens the first one with a hole. Without examples, all is missing. */
export async function openFirst() {
  $("examples").hidden = state.model.examples === 0;
  $("examples-strip").replaceChildren();
  const { rows } = state.model.examples
    ? await requestJson(`/v1/examples?${query({ count: COUNT })}`)
    : { rows: [] };
  $("examples-strip").append(...rows.map(exampleButton));
  const open = state.model.image ? openSheet : openForm;
  open(rows[0]?.values);
}

function exampleButton({ label, values }, i) {
  const text = label ?? `row ${i + 1}`;
  const button = element("button", {
    type: "button",
    title: `Example ${i + 1}: ${text}`,
    ariaLabel: `Example ${i + 1}, ${label === null ? "without a label" : `labelled ${label}`}`,
  });
  if (state.model.image) {
    const canvas = element("canvas", {});
    paintImage(canvas, values, 56);
    button.append(canvas);
  } else {
    button.textContent = text;
  }
  button.dataset.label = label ?? "";
  const show = state.model.image ? startSheet : startForm;
  button.addEventListener("click", () => show(values));
  return button;
}
