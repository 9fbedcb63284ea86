// How the page asks where there is no service: the engine answers in a worker of this browser.
// Rows and models stay on this machine.

const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
const queue = []; // what waits; the worker has one question at a time, so that old ones can leave
let current = null; // what the worker is asked

worker.addEventListener("message", ({ data }) => {
  const { settle } = current;
  current = null;
  askNext();
  settle(data);
});
worker.addEventListener("error", ({ message }) => {
  const told = { status: 500, body: JSON.stringify({ error: `the engine has stopped: ${message}` }) };
  for (const { settle } of [current, ...queue.splice(0)]) settle?.(told);
});

function askNext() {
  while (!current && queue.length) {
    const next = queue.shift();
    if (next.signal?.aborted) continue;
    current = next;
    worker.postMessage(next.message, next.transfer);
  }
}

function enqueue(message, transfer, signal) {
  return new Promise((settle, reject) => {
    signal?.throwIfAborted();
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    queue.push({ message, transfer, signal, settle });
    askNext();
  });
}

const asResponse = ({ status, body, type }) =>
  new Response(body, { status, headers: { "content-type": type ?? "application/json" } });

/** The response to a request; the same as that of the service. */
export async function ask(path, { headers = {}, body, signal } = {}) {
  const [place, query = ""] = path.split("?");
  const bytes = await new Blob(body === undefined ? [] : [body]).arrayBuffer();
  const csv = (headers["content-type"] ?? "").startsWith("text/csv");
  return asResponse(await enqueue({ place, query, csv, bytes }, [bytes], signal));
}

/** Adds a model from the bytes of its file. */
export async function openModel(name, bytes) {
  const { status, body } = await enqueue({ open: name, bytes }, [bytes]);
  if (status !== 200) throw new Error(JSON.parse(body).error);
}
