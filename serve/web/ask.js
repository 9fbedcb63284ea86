// How the page asks: over HTTP. The site that needs no service has its own module of this name,
// web/site/ask.js, which asks the engine in the browser.

/** The response to a request; the same as that of `fetch`. */
export const ask = (path, options) => fetch(path, options);
