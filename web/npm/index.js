// Sumout in JavaScript: thin over the engine. index.d.ts says what everything means.

import init, { initSync, WebModel } from "./sumout_web.js";

let started; // the engine, fetched once

/** Fetches the engine, unless its bytes are given; `Model.load` does it where it was not done. */
export function start(engine) {
  started ??= engine === undefined
    ? init()
    : Promise.resolve(initSync({ module: engine }));
  return started;
}

export class Model {
  #model;

  constructor(model) {
    this.#model = model;
    this.width = model.width;
    this.classes = model.classes;
    this.columns = model.columns.map((name, column) => {
      const categories = model.categories(column);
      return { name, categories: categories.length ? categories : null };
    });
  }

  static async load(file) {
    await start();
    const bytes = file instanceof Blob ? await file.arrayBuffer() : file;
    return new Model(new WebModel(new Uint8Array(bytes)));
  }

  predict(rows) {
    return this.#model.predict(rows);
  }

  posterior(rows) {
    return this.#model.posterior(rows);
  }

  logLikelihood(rows) {
    return this.#model.logLikelihood(rows);
  }

  impute(rows, { how = "mean", class: label, seed = 1 } = {}) {
    return this.#model.impute(rows, how, this.#number(label), seed);
  }

  sample(count, { class: label, seed = 1 } = {}) {
    return this.#model.sample(count, this.#number(label), seed);
  }

  free() {
    this.#model.free();
  }

  /** The number of a class that is given by its name or number. */
  #number(label) {
    if (label === undefined || label === null) return undefined;
    const found = typeof label === "number" ? label : this.classes.indexOf(label);
    if (this.classes[found] === undefined) {
      throw new Error(`class: expected one of ${this.classes.join(", ")}, got '${label}'`);
    }
    return found;
  }
}
