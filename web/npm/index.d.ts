/** Fetches the engine; `Model.load` does it where it was not done. In Node, give the bytes of `sumout_web_bg.wasm`. */
export function start(engine?: BufferSource | WebAssembly.Module): Promise<unknown>;

/** A column of a table. */
export interface Column {
  name: string;
  /** The names of its categories; a cell is the number of one, from 0. Null for a number. */
  categories: string[] | null;
}

export interface ImputeOptions {
  /** What holes are filled with: the exact mean (the default) or median, the most likely values, or a random sample. */
  how?: "mean" | "median" | "mode" | "sample";
  /** Given this class: its name, or its number from 0. */
  class?: string | number;
  /** Seed of a sample, a whole number from 0; the same seed gives the same sample. 1 unless given. */
  seed?: number;
}

export interface SampleOptions {
  /** Of this class: its name, or its number from 0. */
  class?: string | number;
  /** A whole number from 0; the same seed gives the same samples. 1 unless given. */
  seed?: number;
}

/**
 * A model of rows with holes.
 *
 * Rows lie one after the other in a `Float32Array` of n × `width` numbers; NaN is missing.
 * What is missing is summed out, exactly. An `Error` says what is wrong with rows that cannot be answered.
 */
export class Model {
  /** Opens a model file: its bytes, or a file that a user chose. */
  static load(file: ArrayBuffer | Uint8Array | Blob): Promise<Model>;

  /** Numbers in a row. */
  readonly width: number;
  /** The names of the classes, K of them; one that is called "0" where there are none. */
  readonly classes: string[];
  /** The columns of a table; empty for images, whose rows are pixels. */
  readonly columns: Column[];

  /** (n): the number of the most probable class of each row. */
  predict(rows: Float32Array): Uint32Array;
  /** (n, K): the probability of each class given what is observed, P(y|x). */
  posterior(rows: Float32Array): Float64Array;
  /** (n): the logarithm of the density of what is observed, log P(x). */
  logLikelihood(rows: Float32Array): Float64Array;
  /** (n, width): the rows with their holes filled. */
  impute(rows: Float32Array, options?: ImputeOptions): Float32Array;
  /** (count, width): new rows. */
  sample(count: number, options?: SampleOptions): Float32Array;
  /** Frees its memory; it cannot be asked after that. */
  free(): void;
}
