// What only the site without a service has: model files are opened on the page, by choice or drop.

import { openModel } from "./ask.js";
import { $, showProblem } from "./elements.js";

const isModel = (file) => file?.name.endsWith(".sumout");

async function open(file) {
  showProblem(null);
  try {
    const name = file.name.replace(/\.sumout$/, "");
    await openModel(name, await file.arrayBuffer());
    document.dispatchEvent(new CustomEvent("model", { detail: name }));
  } catch (error) {
    showProblem(new Error(`${file.name}: ${error.message}`));
  }
}

$("model-file").addEventListener("change", () => {
  const [file] = $("model-file").files;
  if (file) open(file);
  $("model-file").value = ""; // so that the same file can be chosen again
});

// Before the page sees it: a model that is dropped where tables are expected is still a model.
window.addEventListener("drop", (event) => {
  const [file] = event.dataTransfer.files;
  if (!isModel(file)) return;
  event.preventDefault();
  event.stopPropagation();
  open(file);
}, { capture: true });
