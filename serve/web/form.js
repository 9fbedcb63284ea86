// The form of a table, and what the model says about the fields that are empty.

import {
  $, cell, columnHead, decimalsFor, element, fixed, mostProbable, named, newBar, percent, plural,
  rowHead, setBar, shown, table, tableRow, withDeviation,
} from "./elements.js";
import { columns, state } from "./service.js";

const MANY_COLUMNS = 12; // from here on there is a search
const MAX_CATEGORIES = 4; // shown of a missing category

let onChange; // called when the row is another one

export function buildForm() {
  const fields = columns().map((column, i) => {
    const label = element("label", { htmlFor: `column-${i}` }, named(column.name));
    return element("div", { className: "field" }, label, formInput(column, `column-${i}`));
  });
  $("fields").replaceChildren(...fields);
  $("find-label").hidden = columns().length < MANY_COLUMNS;
  $("find").value = "";
}

function formInput(column, id) {
  if (column.kind === "date") {
    return element("input", { id, type: "text", placeholder: "missing" });
  }
  if (!column.categories) {
    return element("input", { id, type: "number", step: "any", placeholder: "missing" });
  }
  const option = (name) => element("option", { value: name, textContent: name });
  const missing = element("option", { value: "", textContent: "missing" });
  return element("select", { id }, missing, ...column.categories.map(option));
}

/** The row for the service: null is missing. */
export function formRow() {
  return columns().map((column, i) => {
    const text = $(`column-${i}`).value;
    if (text === "") return null;
    return column.categories || column.kind === "date" ? text : Number(text);
  });
}

export function startForm(values) {
  values.forEach((x, i) => ($(`column-${i}`).value = x ?? ""));
  touched();
}

/** With a hole: where nothing is missing, the first value is left out. */
export function openForm(values) {
  if (!values) return startForm(columns().map(() => null));
  startForm(values.includes(null) ? values : [null, ...values.slice(1)]);
}

/** The form has changed. */
function touched() {
  const fields = $("fields").querySelectorAll("input, select");
  for (const field of fields) field.classList.toggle("empty", field.value === "");
  $("clear").disabled = [...fields].every((field) => field.value === "");
  onChange();
}

export function listenToForm(changed) {
  onChange = changed;
  $("fields").addEventListener("input", touched);
  $("table-ask").addEventListener("submit", (event) => event.preventDefault());
  $("clear").addEventListener("click", () => openForm(null));
  $("find").addEventListener("input", () => {
    const wanted = $("find").value.trim().toLowerCase();
    columns().forEach(({ name }, i) => {
      $("fields").children[i].hidden = !name.toLowerCase().includes(wanted);
    });
  });
}

// ---- the answer --------------------------------------------------------------------------------

/** One row for each missing column, with places for so many samples. */
export function showTable(answer, asked, samples) {
  const missing = columns().map((_, i) => i).filter((i) => asked[i] === null);
  const numbers = Array.from({ length: samples }, (_, i) => i + 1);
  const heads = ["column", "expected", ...numbers.map((i) => `sample ${i}`)];
  const rows = missing.map((i) => beliefRow(i, answer, numbers));
  const filled = table(heads.map((text) => columnHead(text)), rows);
  $("table-hint").textContent = missing.length
    ? `${missing.length} of ${plural(asked.length, "column")}, given what is observed: `
      + "mean ± standard deviation, or probabilities."
    : "Nothing is missing. Empty a field, and the model says what it expects there.";
  $("table-answer").replaceChildren(...(missing.length ? [filled] : []));
}

function beliefRow(i, answer, numbers) {
  const column = columns()[i];
  const belief = element("td", { className: "filled" }, beliefOf(column, i, answer));
  const row = tableRow(rowHead(column.name), belief, ...numbers.map(() => cell("…")));
  row.dataset.column = i;
  row.dataset.decimals = decimalsFor(answer.deviation[i]) ?? "";
  return row;
}

/** Samples come later. */
export function showTableDraws(draws) {
  for (const row of $("table-answer").querySelectorAll("tbody tr")) {
    const { column, decimals } = row.dataset;
    const text = (x) => (typeof x === "number" && decimals ? fixed(x, decimals) : shown(x));
    const cells = draws.map((values) => cell(text(values[column])));
    row.replaceChildren(...[...row.children].slice(0, 2), ...cells);
  }
}

/** Mean and deviation of a number; probabilities of a category. */
function beliefOf(column, i, answer) {
  const probabilities = answer.probabilities?.[i];
  if (!probabilities) return named(withDeviation(answer.values[i], answer.deviation[i]));
  const names = column.categories ?? probabilities.map((_, code) => String(code));
  const { kept, others, rest } = mostProbable(names, probabilities, MAX_CATEGORIES);
  const bars = kept.map((at, place) => {
    const bar = newBar();
    setBar(bar, { name: names[at], share: probabilities[at], isBest: place === 0 });
    return bar;
  });
  const list = element("ol", { className: "bars small" }, ...bars);
  if (!others) return list;
  const text = `${plural(others, "other")}: ${percent(rest)}`;
  return element("div", {}, list, element("p", { className: "hint", textContent: text }));
}

export const hasCategories = () => state.model.columns.some(({ kind }) => kind === "category");
