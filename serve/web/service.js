// The chosen model, and requests to the service.

import { ask } from "./ask.js";
import { $ } from "./elements.js";

const MAX_RETRIES = 10; // of a request to a busy service

export const state = { models: [], model: null, view: "erase" };

let leaving = new AbortController(); // aborted when another model is chosen

/** From now on another model is asked. What was asked of the one before is abandoned. */
export function chooseModel(name) {
  leaving.abort();
  leaving = new AbortController();
  state.model = state.models.find((model) => model.name === name);
}

/** Columns of the model; x0, x1, … where it has no names. */
export const columns = () => state.model.columns.length
  ? state.model.columns
  : Array.from({ length: state.model.width }, (_, i) => ({ name: `x${i}`, categories: null }));

/** Whether there are classes to tell apart: a model without classes has one that is called 0. */
export const hasClasses = () => state.model.classes.length > 1;

/** The column of numbers that the model predicts, if there is one. */
export const predictedColumn = () =>
  columns().find(({ name, kind }) => name === state.model.predicts && kind !== "date");

/** Query parameters, with the name of the model. */
export const query = (parameters) =>
  new URLSearchParams({ model: state.model.name, ...parameters });

/** Fetches; asks the user for a token where one is needed, and waits while the service is busy. */
export async function request(path, options = {}, retries = 0) {
  const { signal = leaving.signal } = options;
  const token = sessionStorage.getItem("token");
  const headers = { ...options.headers, ...(token ? { authorization: `Bearer ${token}` } : {}) };
  let response;
  try {
    response = await ask(path, { ...options, signal, headers });
  } catch {
    signal.throwIfAborted();
    throw new Error("The service does not answer. Is it still running?");
  }
  const again = (count) => request(path, { ...options, signal }, count);
  signal.throwIfAborted();
  if (response.status === 401) {
    await askForToken();
    return again(retries);
  }
  const busy = response.status === 503 || response.status === 429;
  if (busy && retries < MAX_RETRIES) {
    await new Promise((resolve) => setTimeout(resolve, 300));
    return again(retries + 1);
  }
  if (!response.ok) throw new Error(errorMessage(await response.text()));
  return response;
}

export const requestJson = async (path, options) => (await request(path, options)).json();

/** What the model says of rows. */
function postRows(path, rows, signal) {
  const headers = { "content-type": "application/json" };
  return requestJson(path, { method: "POST", headers, body: JSON.stringify({ rows }), signal });
}

/** Rows with their classes. */
export const requestPredicted = (rows) => postRows(`/v1/predict?${query({})}`, rows);

/** Rows with their holes filled. */
export const requestFilled = (rows, parameters, signal) =>
  postRows(`/v1/impute?${query(parameters)}`, rows, signal);

/** The message in an error of the service; other text (of a proxy, say) as it is. */
function errorMessage(text) {
  try {
    return JSON.parse(text).error;
  } catch {
    return text;
  }
}

let asking = null; // several requests may need the token at once

function askForToken() {
  asking ??= new Promise((resolve) => {
    const dialog = $("ask-token");
    $("token").value = "";
    dialog.showModal();
    const keepToken = () => {
      sessionStorage.setItem("token", $("token").value.trim());
      asking = null;
      resolve();
    };
    dialog.addEventListener("close", keepToken, { once: true });
  });
  return asking;
}
