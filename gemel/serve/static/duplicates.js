// Where duplicates begin: a threshold among the similarities of nearest neighbours, and the groups it makes.
import { ask, colour, download, element, emptyState, format, lazily, sharp, showNotice } from "/page/api.js";

const BINS = 100;
const SHOWN = 40;
const slider = document.querySelector("#threshold");
const canvas = document.querySelector("#histogram");
const status = document.querySelector("#duplicates-status");
const list = document.querySelector("#groups");
const more = document.querySelector("#more-groups");
const exports = [document.querySelector("#export-csv"), document.querySelector("#export-jsonl")];
let state, nearest = [], known = null, found = null, nShown = SHOWN;

const threshold = () => Number(slider.value);

function drawHistogram() {
  const { pen, width, height } = sharp(canvas);
  pen.clearRect(0, 0, width, height);
  if (!nearest.length) return;
  const low = Number(slider.min), room = height - 22, inset = 8, span = width - 2 * inset;
  const counts = new Array(BINS).fill(0);
  for (const score of nearest) if (score >= low) counts[Math.min(BINS - 1, Math.floor(((score - low) / (1 - low)) * BINS))]++;
  const highest = Math.max(1, ...counts);
  counts.forEach((count, bin) => {
    const value = low + (bin + 0.5) * ((1 - low) / BINS);
    pen.fillStyle = value >= threshold() ? colour("--accent") : colour("--line");
    const tall = (room - 4) * Math.sqrt(count / highest); // few near-duplicates must not vanish beside many texts
    pen.fillRect(inset + (bin / BINS) * span, room - tall, span / BINS - 1, tall);
  });
  pen.fillStyle = colour("--muted");
  pen.font = `12px ${colour("--sans")}`;
  for (let value = low; value <= 1.0001; value += 0.1) {
    pen.textAlign = value === low ? "left" : value > 0.99 ? "right" : "center";
    pen.fillText(value.toFixed(1), inset + ((value - low) / (1 - low)) * span, height - 5);
  }
}

function forgetGroups() {
  group.stop();
  found = null;
  for (const button of exports) button.disabled = true;
  more.hidden = true;
  list.replaceChildren();
  status.textContent = "";
}

// What was found in one collection must not be shown, or exported, under another's name.
function forget() {
  forgetGroups();
  nearest = [];
  known = null;
  drawHistogram();
}

function moved() {
  document.querySelector("#threshold-value").value = threshold().toFixed(3);
  drawHistogram();
  const near = nearest.filter((score) => score >= threshold()).length;
  status.textContent = nearest.length ? `${format.format(near)} of ${format.format(nearest.length)} texts have a neighbour that near` : "";
  if (!nearest.length) return;
  for (const button of exports) button.disabled = true; // until the list is of this threshold
  group();
}

const group = lazily(120, async (signal) => {
  try {
    found = await ask("/v1/dedupe", { collection: state.collection.name, threshold: threshold() }, signal);
  } catch (error) {
    if (error.name !== "AbortError") forgetGroups();
    throw error;
  }
  nShown = SHOWN;
  status.textContent = `${format.format(found.data.length)} groups: ${format.format(found.n_kept)} texts stay, ${format.format(found.n_dropped)} would be dropped`;
  showGroups();
});

function showGroups() {
  for (const button of exports) button.disabled = !found.n_dropped;
  more.hidden = found.data.length <= nShown;
  if (!found.data.length) return list.replaceChildren(emptyState("No duplicates at this threshold", "Move the handle to the left to find more."));
  list.replaceChildren(
    ...found.data.slice(0, nShown).map((each) =>
      element("li", { class: "group" }, element("p", {}, each.kept.text), element("ul", {}, ...each.dropped.slice(0, 20).map(dropped), rest(each.dropped.length - 20))),
    ),
  );
}

const dropped = (each) => element("li", {}, element("b", {}, each.is_repeat ? "same" : each.score.toFixed(3)), element("span", {}, each.text));
const rest = (n) => (n > 0 ? element("li", {}, element("b"), element("span", {}, `and ${format.format(n)} more`)) : null);

const rows = () => found.data.flatMap((each) => each.dropped.map((one) => ({ id: one.id, text: one.text, score: one.score, kept_id: each.kept.id, kept_text: each.kept.text })));
const quoted = (value) => `"${String(value).replaceAll('"', '""')}"`;

function exportCsv() {
  const lines = rows().map((row) => Object.values(row).map(quoted).join(","));
  download("duplicates.csv", "text/csv", ["id,text,score,kept_id,kept_text", ...lines, ""].join("\r\n"));
}

function exportJsonl() {
  download("duplicates.jsonl", "application/jsonl", rows().map((row) => `${JSON.stringify(row)}\n`).join(""));
}

const load = lazily(0, async (signal) => {
  const { name, n_records: n } = state.collection;
  if (known === `${name} ${n}`) return moved();
  forget();
  status.textContent = "Comparing every text with every other…";
  let mined;
  try {
    mined = await ask("/v1/mine", { collection: name, k: 1, return_texts: false }, signal);
  } catch (error) {
    if (error.name !== "AbortError") forget();
    throw error;
  }
  nearest = mined.data.map((pair) => pair.score);
  known = `${name} ${n}`;
  moved();
});

export const duplicatesTab = {
  setUp(shared) {
    state = shared;
    slider.addEventListener("input", moved);
    more.addEventListener("click", () => {
      nShown += SHOWN;
      showGroups();
    });
    exports[0].addEventListener("click", exportCsv);
    exports[1].addEventListener("click", exportJsonl);
    new ResizeObserver(drawHistogram).observe(canvas);
  },
  show() {
    showNotice("");
    const hasEnough = state.collection?.n_records > 1;
    document.querySelector(".histogram").hidden = !hasEnough;
    slider.disabled = !hasEnough;
    if (hasEnough) return load();
    load.stop();
    forget();
    list.replaceChildren(emptyState("Nothing to compare yet", "Choose a collection with two texts or more, or bring a file with “Add texts”."));
  },
};
