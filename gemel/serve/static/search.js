// Search as you type; ways to search side by side; the words that made a hit a hit.
import { ask, element, emptyState, format, lazily, showNotice } from "/page/api.js";

const WAYS = [
  { name: "hybrid", title: "Hybrid", says: "by meaning and by words", request: { mode: "hybrid" } },
  { name: "dense", title: "Dense", says: "by meaning", request: { mode: "dense" } },
  { name: "lexical", title: "Words", says: "by words (BM25)", request: { mode: "lexical" } },
  { name: "reranked", title: "Re-ranked", says: "read again by the re-ranker", request: { mode: "hybrid", rerank: true, n_candidates: 50 } },
];
const DEMO = "python-docstrings"; // what these questions are about
const SUGGESTIONS = ["how do I compress a file", "wait until another thread is finished", "what happens when the connection is lost"];
const EXPLAIN_AFTER = 350; // milliseconds without a key: reasons cost a few hundred encodings

const query = document.querySelector("#query");
const filter = document.querySelector("#filter");
const results = document.querySelector("#results");
const status = document.querySelector("#search-status");
let state;

const run = lazily(40, (signal) => search(signal, false));
const runExplained = lazily(EXPLAIN_AFTER, (signal) => search(signal, true));

function changed() {
  run();
  runExplained();
}

const chosen = () => WAYS.filter((way) => document.querySelector(`#way-${way.name}`).checked);

async function search(signal, explain) {
  const asked = query.value.trim();
  document.querySelector("#suggestions").hidden = Boolean(asked) || !state.collection?.name.startsWith(DEMO);
  if (!state.collection || !asked) return showEmpty();
  const ways = chosen();
  const asking = JSON.stringify([asked, filter.value, state.collection.name, ways.map((way) => way.name)]);
  try {
    const columns = await Promise.all(ways.map((way) => column(way, asked, explain, signal)));
    // The quick answer may come after the explained one, which says more.
    if (!explain && results.dataset.explained === asking) return;
    if (!columns.length) results.replaceChildren(emptyState("Choose a way to search", "Tick one or several above."));
    else results.replaceChildren(...columns);
    results.dataset.explained = explain ? asking : "";
    showNotice("");
  } catch (error) {
    if (error.name === "AbortError") throw error;
    status.textContent = "";
    results.replaceChildren(emptyState("That did not work", error.message));
  }
}

async function column(way, asked, explain, signal) {
  const began = performance.now();
  const request = { collection: state.collection.name, queries: asked, k: 10, explain, filter: filter.value.trim() || null, ...way.request };
  const hits = (await ask("/v1/search", request, signal)).data[0];
  const milliseconds = Math.max(1, Math.round(performance.now() - began));
  if (!explain) {
    status.textContent = hits.length ? `${hits.length} of ${format.format(state.collection.n_records)} in ${milliseconds} ms` : "Nothing found";
  }
  const list = element("ol", { class: "hits" }, ...hits.map((hit) => shownHit(hit)));
  const title = element("h2", {}, way.title, element("small", {}, way.says));
  const body = hits.length ? list : emptyState("Nothing found", filter.value ? "The filter may be too narrow." : "Try other words.");
  return element("section", { class: "column", "aria-label": way.title }, title, body);
}

function shownHit(hit) {
  const why = element("div", { class: "why" });
  for (const [channel, place] of Object.entries(hit.explanation?.channels ?? {})) {
    why.append(element("span", {}, `${channel === "dense" ? "meaning" : "words"} #${place.rank} (${place.score.toFixed(channel === "dense" ? 3 : 1)})`));
  }
  if (!hit.explanation) why.append(element("span", {}, `score ${hit.score.toFixed(3)}`));
  if (hit.explanation?.reranked_from) why.append(element("span", {}, `was #${hit.explanation.reranked_from}`));
  for (const [key, value] of Object.entries(hit.metadata)) why.append(element("i", {}, `${key} = ${typeof value === "string" ? value.slice(0, 60) : JSON.stringify(value)}`));
  const more = () => {
    query.value = hit.text;
    query.focus();
    changed();
  };
  why.append(element("button", { class: "linkish", type: "button", "aria-label": `More like: ${hit.text.slice(0, 60)}`, on: { click: more } }, "more like this"));
  return element("li", { class: "hit" }, element("p", {}, ...marked(hit)), why);
}

// The text in parts: bold where the query's words stand, the deeper the tint the more a word counts.
function marked(hit) {
  const { matches = [], influences = [] } = hit.explanation ?? {};
  const text = [...hit.text]; // the server counts code points
  const classes = new Array(text.length).fill("");
  const strongest = Math.max(0.05, ...influences.map((each) => each.share));
  for (const each of influences) {
    const depth = each.share / strongest;
    const tint = each.share < 0.03 ? "" : depth > 0.6 ? "i3" : depth > 0.35 ? "i2" : depth > 0.2 ? "i1" : "";
    classes.fill(tint, each.start, each.start + [...each.words].length);
  }
  for (const match of matches) {
    for (let at = match.start; at < match.start + [...match.word].length; at++) classes[at] += " word";
  }
  const parts = [];
  for (let start = 0, at = 1; at <= text.length; at++) {
    if (at < text.length && classes[at] === classes[start]) continue;
    const part = text.slice(start, at).join("");
    parts.push(classes[start] ? element("mark", { class: classes[start].trim() }, part) : part);
    start = at;
  }
  return parts;
}

function showEmpty() {
  status.textContent = "";
  results.dataset.explained = "";
  if (!state.keepsCollections) {
    return results.replaceChildren(emptyState("No collections here", "Start the server with ", element("code", {}, "gemel serve --collections FOLDER"), " to keep and search texts."));
  }
  if (!state.collection) return results.replaceChildren(emptyState("Nothing to search yet", "Bring a .txt, .csv or .jsonl file with “Add texts”."));
  if (!state.collection.n_records) return results.replaceChildren(emptyState(`${state.collection.name} is empty`, "Bring a file with “Add texts”."));
  results.replaceChildren(emptyState(`${format.format(state.collection.n_records)} texts in ${state.collection.name}`, "Type a question: hits come as you type, found by what it means."));
}

export const searchTab = {
  setUp(shared) {
    state = shared;
    query.addEventListener("input", changed);
    filter.addEventListener("input", changed);
    const modes = document.querySelector("#modes");
    const isWide = window.innerWidth > 820;
    for (const way of WAYS) {
      const box = element("input", { type: "checkbox", id: `way-${way.name}`, checked: way.name === "hybrid" || (isWide && way.name === "dense"), on: { change: changed } });
      modes.append(element("label", { class: "chip", title: way.says }, box, way.title));
    }
    const suggestions = document.querySelector("#suggestions");
    suggestions.append(
      "For example",
      ...SUGGESTIONS.map((text) =>
        element("button", { class: "quiet", type: "button", on: { click: () => { query.value = text; query.focus(); changed(); } } }, text),
      ),
    );
  },
  show() {
    const reranked = document.querySelector("#way-reranked");
    reranked.disabled = !state.info?.reranker;
    reranked.parentElement.title = state.info?.reranker ? "read again by the re-ranker" : "Start the server with --reranker NAME";
    const hasWords = state.collection?.text_search.length !== 0;
    for (const name of ["hybrid", "lexical"]) document.querySelector(`#way-${name}`).disabled = !hasWords;
    query.disabled = !state.collection;
    changed();
    if (matchMedia("(hover: hover)").matches && document.activeElement === document.body) query.focus();
  },
};
