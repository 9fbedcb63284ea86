// The engine in a thread of its own: one question at a time, with the status that the service gives.

import init, { PageService } from "./sumout_web.js";

/** Fetches the engine and the digits side by side. */
async function start() {
  const model = fetch("digits.sumout").then((response) => response.arrayBuffer());
  await init();
  const service = new PageService();
  service.open("digits", new Uint8Array(await model));
  return service;
}

const started = start();

function answer(service, { open, place, query, csv, bytes }) {
  if (open !== undefined) {
    service.open(open, new Uint8Array(bytes));
    return { status: 200, body: "{}" };
  }
  const body = service.answer(place, query, csv, new Uint8Array(bytes));
  return { status: 200, body, type: csv ? "text/csv" : "application/json" };
}

/** A problem has its status first: "400 how: expected …". */
function problem({ message }) {
  const [, status, text] = /^(\d{3}) (.*)$/s.exec(message) ?? [null, 500, message];
  return { status: Number(status), body: JSON.stringify({ error: text }) };
}

self.addEventListener("message", async ({ data }) => {
  try {
    self.postMessage(answer(await started, data));
  } catch (error) {
    self.postMessage(problem(error));
  }
});
