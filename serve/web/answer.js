// The answer to the image or form as it is now: classes, completions, samples.

import {
  $, clamp, decimalsFor, element, fixed, mostProbable, newBar, percent, setBar, showProblem, shown,
} from "./elements.js";
import { formRow, hasCategories, showTable, showTableDraws } from "./form.js";
import { colours, mix, paint, paintImage, scaleFor } from "./pictures.js";
import {
  hasClasses, predictedColumn, requestFilled, requestPredicted, state,
} from "./service.js";
import { sheetRow } from "./sheet.js";

const COMPLETIONS = 4; // samples shown beside the mean
const MAX_BARS = 12; // classes shown
const REST = 200; // milliseconds without a change after which the hand rests
const SLOW = 150; // milliseconds: a mean that takes longer waits until the hand rests

const newLive = () => ({ dirty: false, busy: false, isSlow: false, resting: null, rest: null });
let live = newLive(); // one for each model that was chosen

/** Called on every change of the row. Only one request is under way; the latest row wins. */
export function changed() {
  if (!live.dirty) live.since = performance.now();
  live.dirty = true;
  stopResting();
  if (!live.busy) update(live);
}

/** Another model is asked from now on; nothing of the one before stays. */
export function forgetAnswer() {
  stopResting();
  live = newLive();
  clearAnswer();
  showProblem(null);
  setBusy(true);
}

/** What is computed for a row that is no longer there is abandoned. */
function stopResting() {
  clearTimeout(live.resting);
  live.rest?.abort();
  $("draws").ariaBusy = true;
}

const setBusy = (busy) => ($("answer").ariaBusy = busy);

/** Classes and means while the hand moves; only classes where means take long. */
async function update(mine) {
  mine.busy = true;
  setBusy(true);
  let asked;
  while (mine.dirty) {
    mine.dirty = false;
    const { since } = mine;
    asked = state.model.image ? sheetRow() : formRow();
    try {
      const ask = mine.isSlow && !predictedColumn() ? requestScores : requestMean;
      const [answer, number] = await Promise.all([ask(mine, asked), requestNumber(asked)]);
      showAnswer({ ...answer, number }, asked, Math.round(performance.now() - since));
      showProblem(null);
    } catch (error) {
      if (error.name === "AbortError") return; // another model was chosen
      asked = null;
      clearAnswer();
      showProblem(error);
    }
  }
  mine.busy = false;
  setBusy(false);
  if (asked) mine.resting = setTimeout(() => complete(mine, asked), REST);
}

/** What takes longest, once the hand rests: the mean, where it is slow, and random completions. */
async function complete(mine, asked) {
  mine.rest = new AbortController();
  const { signal } = mine.rest;
  try {
    if (mine.isSlow) showCompletion(await requestMean(mine, asked, signal), asked);
    showDraws(await requestDraws(mine, asked, signal), asked);
  } catch (error) {
    showProblem(error);
  }
}

const requestScores = async (_, asked) => firstRow(await requestPredicted([asked]));

/** The distribution of the number that the model predicts, if it predicts one. */
const requestNumber = async (asked) =>
  predictedColumn() ? (await requestPredicted([asked])).rows[0] : null;

async function requestMean(mine, asked, signal) {
  const start = performance.now();
  const probabilities = hasCategories() ? { probabilities: true } : {};
  const parameters = { deviation: true, classes: true, ...probabilities };
  const answer = firstRow(await requestFilled([asked], parameters, signal));
  mine.isSlow = performance.now() - start > SLOW;
  return answer;
}

const firstRow = ({ classes, rows }) => ({ classes, ...rows[0] });

/** All at once; one after the other where they are slow, so that the next stroke waits for one. */
async function requestDraws(mine, asked, signal) {
  const copies = new Array(COMPLETIONS).fill(asked);
  if (!asked.includes(null)) return copies;
  const draws = [];
  while (draws.length < COMPLETIONS) {
    const parameters = { how: "sample", seed: draws.length + 1 };
    const { rows } = await requestFilled(mine.isSlow ? [asked] : copies, parameters, signal);
    draws.push(...rows.map(({ values }) => values));
  }
  return draws;
}

function showAnswer(answer, asked, milliseconds) {
  showBars(answer);
  const observed = asked.filter((x) => x !== null).length / asked.length;
  showVerdict(answer, observed);
  $("observed").textContent = percent(observed, 0);
  $("time").textContent = `${milliseconds} ms`;
  $("completion").ariaBusy = !answer.values;
  if (answer.values) showCompletion(answer, asked);
  const { dataset } = document.body; // for the tests
  dataset.milliseconds = milliseconds;
  dataset.answers = Number(dataset.answers ?? 0) + 1;
}

/** So that no old answer stays, beside an error or under another model's name. */
function clearAnswer() {
  clearTimeout(announcement);
  for (const id of ["bars", "table-answer"]) $(id).replaceChildren();
  for (const id of ["log-likelihood", "observed", "time"]) $(id).textContent = "–";
  for (const id of ["verdict-p", "spoken", "table-hint", "bars-rest"]) $(id).textContent = "";
  $("verdict-class").textContent = "–";
  $("verdict-class").className = "";
  const canvas = () => element("canvas", { ariaLabel: "A random completion", role: "img" });
  $("draws").replaceChildren(...Array.from({ length: COMPLETIONS }, canvas));
  const { height, width } = state.model.image ?? { height: 1, width: 1 };
  const pictures = [$("mean"), $("deviation"), ...$("draws").children];
  for (const picture of pictures) Object.assign(picture, { width, height, repaint: null });
  $("warning").hidden = true;
}

/** In their own order; where there are many, only the most probable. */
function showBars({ classes, posterior, class: best }) {
  const { kept, others, rest } = mostProbable(classes, posterior, MAX_BARS);
  if (!others) kept.sort((a, b) => a - b);
  const list = $("bars");
  const shownBars = hasClasses() ? kept : [];
  while (list.children.length < shownBars.length) list.append(newBar());
  while (list.children.length > shownBars.length) list.lastChild.remove();
  shownBars.forEach((y, i) => {
    const [name, share] = [classes[y], posterior[y]];
    setBar(list.children[i], { name, share, isBest: name === best });
  });
  const noun = others === 1 ? "other class" : "other classes";
  $("bars-rest").textContent = others ? `${others} ${noun}: ${percent(rest)}` : "";
}

let announcement; // a timer

function showVerdict(answer, observed) {
  const best = Math.max(...answer.posterior);
  const { log_likelihood: log } = answer;
  const prior = observed ? "" : ", before anything is observed";
  const [verdict, why] = answer.number
    ? numberAsText(answer.number)
    : [answer.class, `probability ${percent(best)}`];
  $("verdict-class").textContent = verdict;
  $("verdict-class").className = verdict.length > 14 ? "long" : "";
  $("verdict-p").textContent = why + prior;
  $("log-likelihood").textContent = log === null ? "−∞" : fixed(log, 1);
  $("warning").hidden = !answer.warning;
  $("warning").textContent = answer.warning ? `This row is ${answer.warning}.` : "";
  clearTimeout(announcement); // screen readers read only the last of many strokes
  let spoken = `Log-likelihood ${$("log-likelihood").textContent}`;
  if (hasClasses()) spoken = `Most probable: ${answer.class}, ${(100 * best).toFixed(0)} percent`;
  if (answer.number) spoken = `Expected: ${verdict}; ${why}`;
  announcement = setTimeout(() => ($("spoken").textContent = spoken), 600);
}

/** The mean, and where the number lies nine times in ten. */
function numberAsText({ mean, sd, quantiles }) {
  const decimals = decimalsFor(sd);
  const text = (x) => (decimals === null ? shown(x) : fixed(x, decimals));
  const [low, high] = [quantiles[0], quantiles.at(-1)].map(text);
  const { name } = predictedColumn();
  return [text(mean), `${name}: from ${low} to ${high} with a probability of 90 %`];
}

/** The exact mean of what is missing, and how sure it is. */
function showCompletion(answer, asked) {
  $("completion").ariaBusy = false;
  if (!state.model.image) return showTable(answer, asked, COMPLETIONS);
  paintImage($("mean"), answer.values, 224, asked);
  paintDeviation(answer.deviation, asked);
  $("deviation-hint").textContent = asked.includes(null)
    ? "Uncertainty (standard deviation)"
    : "Nothing is missing, so there is no uncertainty";
}

function showDraws(draws, asked) {
  if (!state.model.image) showTableDraws(draws);
  else draws.forEach((values, i) => paintImage($("draws").children[i], values, 112, asked));
  $("draws").ariaBusy = false;
}

/** The mean over the channels of a pixel. */
function paintDeviation(deviation, asked) {
  const { height, width, channels, range: [low, high] } = state.model.image;
  const mean = (at) => {
    const own = deviation.slice(at * channels, (at + 1) * channels);
    return own.reduce((sum, x) => sum + x, 0) / channels;
  };
  paint($("deviation"), width, height, scaleFor(224, Math.max(height, width)), (at) => {
    if (asked[at * channels] !== null) return colours.paper;
    return mix(colours.paper, colours.heat, clamp((2 * mean(at)) / (high - low), 0.04, 1));
  });
}
