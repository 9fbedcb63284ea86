// The page of `sumout serve`: erase pixels and watch, look inside, fill a table.
// Plain JavaScript, no dependencies. Modules stand in this order, and use only those before them:
// elements, ask, service, pictures, sheet, form, answer, examples, look, fill, app.

import { changed, forgetAnswer } from "./answer.js";
import { $, element, showProblem } from "./elements.js";
import { openFirst } from "./examples.js";
import { forgetFile, listenToFill, showFillHint } from "./fill.js";
import { buildForm, listenToForm } from "./form.js";
import { forgetLook, listenToLook, openLook } from "./look.js";
import { readColours, repaint } from "./pictures.js";
import { chooseModel, hasClasses, predictedColumn, requestJson, state } from "./service.js";
import { listenToSheet, useTool } from "./sheet.js";

async function useModel(name) {
  chooseModel(name);
  forgetAnswer();
  forgetLook();
  forgetFile();
  const { image } = state.model;
  for (const id of ["image-ask", "image-answer"]) $(id).hidden = !image;
  for (const id of ["table-ask", "table-part"]) $(id).hidden = Boolean(image);
  $("verdict").hidden = !hasClasses() && !predictedColumn();
  $("erase").classList.toggle("of-table", !image);
  $("tab-erase").textContent = image ? "Erase" : "Predict";
  $("canvas").style.aspectRatio = image ? `${image.width} / ${image.height}` : "";
  $("mean-hint").hidden = image?.channels === 3; // colours are shown as they are
  if (!image) buildForm();
  showFillHint();
  if (state.view === "look") openLook().catch(showProblem);
  await openFirst();
}

/** Nothing more will come. */
function failed(error) {
  showProblem(error);
  if (error.name !== "AbortError") $("answer").ariaBusy = false;
}

// ---- tabs and keys -----------------------------------------------------------------------------

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

// ---- light and dark ----------------------------------------------------------------------------

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
}

async function start() {
  listenToTheme();
  listenToTabs();
  listenToShortcuts();
  listenToSheet(changed);
  listenToForm(changed);
  listenToLook();
  listenToFill();
  const chooser = $("model");
  chooser.addEventListener("change", () => useModel(chooser.value).catch(failed));
  // Where models can be opened on the page, its name comes with this event.
  document.addEventListener("model", ({ detail }) => showModels(detail).catch(failed));
  await showModels();
}

/** Lists the models, and uses the one of that name, or the first. */
async function showModels(name) {
  ({ models: state.models } = await requestJson("/v1/models"));
  const option = ({ name }) => element("option", { value: name, textContent: name });
  $("model").replaceChildren(...state.models.map(option));
  $("model-label").hidden = state.models.length < 2;
  $("model").value = name ?? state.models[0].name;
  await useModel($("model").value);
}

start().catch(failed);
