// Fill a table: a CSV file goes to the service and comes back without holes.

import {
  $, cell, columnHead, percent, plural, showProblem, shown, table, tableRow,
} from "./elements.js";
import { hasClasses, query, request, state } from "./service.js";

const PREVIEW_BYTES = 1 << 18;
const PREVIEW_ROWS = 8;
const PREVIEW_COLUMNS = 30;
const HINT_LENGTH = 120; // characters of column names
const SEPARATORS = [",", ";", "\t", "|"];

/** The first records of a CSV file; quotes as in RFC 4180. */
function parseCsv(text, maxRecords, separator = ",") {
  const records = [];
  let record = [], cell = "", quoted = false;
  for (let i = 0; i < text.length && records.length < maxRecords; i++) {
    const c = text[i];
    if (quoted) {
      if (c === '"' && text[i + 1] === '"') { cell += c; i++; }
      else if (c === '"') quoted = false;
      else cell += c;
    } else if (c === '"') quoted = true;
    else if (c === separator) { record.push(cell); cell = ""; }
    else if (c === "\n") {
      record.push(cell.replace(/\r$/, ""));
      if (record.length > 1 || record[0] !== "") records.push(record);
      record = []; cell = "";
    } else cell += c;
  }
  if (cell !== "" || record.length) records.push([...record, cell]);
  return records.slice(0, maxRecords);
}

/** Records of a CSV file that ends with a line break: a line break in quotes ends none. */
function countRecords(text) {
  const [QUOTE, BREAK] = ['"', "\n"].map((c) => c.charCodeAt(0));
  let count = 0, quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === QUOTE) quoted = !quoted;
    else if (c === BREAK && !quoted) count++;
  }
  return count;
}

// ---- a file ------------------------------------------------------------------------------------

let downloadUrl;

/** Nothing of the file or model before stays. */
export function forgetFile() {
  $("download").hidden = true;
  $("preview").replaceChildren();
  $("preview-hint").textContent = $("fill-status").textContent = "";
}

async function fillFile(file) {
  showProblem(null);
  forgetFile();
  $("fill-status").textContent = `Filling ${file.name} …`;
  try {
    const how = document.querySelector("[name=how]:checked").value;
    const start = performance.now();
    const headers = { "content-type": "text/csv" };
    const path = `/v1/impute?${query({ how, classes: hasClasses() })}`;
    const response = await request(path, { method: "POST", headers, body: file });
    const filled = await response.blob();
    const text = await filled.text();
    offerDownload(filled, `${file.name.replace(/\.[^.]*$/, "")}-filled.csv`);
    const seconds = ((performance.now() - start) / 1000).toFixed(2);
    const rows = plural(countRecords(text) - 1, "row");
    $("fill-status").textContent = `${rows} in ${seconds} s.`;
    preview(await file.slice(0, PREVIEW_BYTES).text(), text.slice(0, PREVIEW_BYTES));
  } catch (error) {
    if (error.name === "AbortError") return; // another model was chosen
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

// ---- its first rows ----------------------------------------------------------------------------

/** The class and its probability come first, so that they are in sight however wide the file is. */
function preview(before, after) {
  const now = parseCsv(after, PREVIEW_ROWS + 1);
  const added = hasClasses() ? state.model.classes.length + 2 : 0; // class, its p_…, likelihood
  const own = now[0].length - added;
  const old = recordsBefore(before, own);
  const count = Math.min(PREVIEW_COLUMNS, own);
  const heads = [...(added ? [now[0][own], "probability"] : []), ...now[0].slice(0, count)];
  const rows = now.slice(1).map((cells, i) => {
    const observed = cells.slice(0, count).map((text, j) => previewCell(text, old?.[i + 1]?.[j]));
    return tableRow(...(added ? classCells(cells.slice(own)) : []), ...observed);
  });
  const more = own > count ? ` and ${count} of ${own} columns` : "";
  $("preview-hint").textContent =
    `The first ${plural(rows.length, "row")}${more}; what was filled is marked.`;
  $("preview").replaceChildren(table(heads.map((text) => columnHead(text)), rows));
}

/** The records of the file as it was sent; none where its text cannot be read here. */
function recordsBefore(text, width) {
  const fits = (separator) => parseCsv(text, 1, separator)[0]?.length === width;
  const separator = SEPARATORS.find(fits);
  return separator && !text.includes("\ufffd") ? parseCsv(text, PREVIEW_ROWS + 1, separator) : null;
}

function classCells([name, ...numbers]) {
  const probability = Math.max(...numbers.slice(0, -1).map(Number));
  const cells = [name, percent(probability)];
  return cells.map((text) => cell(text, "class"));
}

function previewCell(text, before) {
  const filled = before !== undefined && before !== text;
  const number = /^-?\d+\.\d+(e-?\d+)?$/.test(text) ? shown(Number(text), 5) : text;
  return filled ? cell(number, "filled") : cell(text);
}

// ---- where files come from ---------------------------------------------------------------------

export function listenToFill() {
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

/** Some names, and how many more there are. */
function listed(names) {
  let length = 0;
  const first = names.filter((name) => (length += name.length) <= HINT_LENGTH);
  const shownNames = first.length ? first : names.slice(0, 1);
  const more = names.length - shownNames.length;
  return shownNames.join(", ") + (more ? ` and ${more} more` : "");
}

export function showFillHint() {
  const { width, columns: own } = state.model;
  const needed = own.length
    ? `The file needs the columns ${listed(own.map(({ name }) => name))}; others stay as they are.`
    : `The file needs a line of names and ${width} columns, or x0 to x${width - 1} among others.`;
  const classes = hasClasses() ? ", and the class of each with its probability" : "";
  $("fill-hint").textContent = `Empty cells, NA and NaN are holes. ${needed} `
    + `You get the rows back with their holes filled${classes}.`;
}
