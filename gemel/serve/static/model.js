// What is loaded, how quick it is now, its limits, and what it reads of a text.
import { ask, element, format, lazily } from "/page/api.js";

const text = document.querySelector("#token-text");
const tokens = document.querySelector("#tokens");
const status = document.querySelector("#token-status");
let state;

function showCards() {
  const { info } = state;
  const facts = {
    Model: info.served_model_name.split("/").at(-1),
    "Numbers a text": format.format(info.dim),
    "Tokens it reads": info.max_input_length === null ? "any number" : format.format(info.max_input_length),
    Computes: info.model_dtype,
    "Re-ranker": info.reranker?.split("/").at(-1) ?? "none",
    Classifier: info.classifier?.split("/").at(-1) ?? "none",
  };
  document.querySelector("#cards").replaceChildren(
    ...Object.entries(facts).map(([name, value]) => element("div", { class: "card" }, element("span", {}, name), element("strong", {}, String(value)))),
  );
  document.querySelector("#limits").replaceChildren(
    ...Object.entries(info.limits).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, format.format(value))]),
  );
}

const showTokens = lazily(120, async (signal) => {
  if (!text.value) {
    tokens.replaceChildren();
    status.textContent = "";
    return;
  }
  let found;
  try {
    found = (await ask("/tokenize", { inputs: text.value }, signal))[0];
  } catch (error) {
    if (error.name === "AbortError") throw error;
    status.textContent = error.message;
    return;
  }
  const longest = state.info.max_input_length ?? Infinity;
  const isCut = found.length > longest;
  const letters = [...text.value];
  tokens.replaceChildren(
    ...found.slice(0, 2_000).map((token, place) => {
      // The closing token stays; what is cut is what stands before it.
      const cut = isCut && place >= longest - 1 && !token.special;
      const shown = token.special ? token.text : letters.slice(token.start, token.stop).join("");
      return element("span", { class: cut ? "cut" : token.special ? "special" : "", title: `${token.text} · ${token.id}` }, shown || token.text);
    }),
  );
  const count = `${format.format(found.length)} tokens`;
  status.textContent = isCut
    ? `${count}; the model reads ${format.format(longest)}, and ${format.format(found.length - longest)} are cut`
    : `${count}${Number.isFinite(longest) ? ` of the ${format.format(longest)} that are read` : ""}`;
});

async function measure(event) {
  const button = event.currentTarget, speed = document.querySelector("#speed");
  button.disabled = true;
  speed.textContent = "…";
  const words = "the quick brown fox jumps over a lazy dog while rivers carry old stories to distant seas".split(" ");
  const texts = Array.from({ length: 512 }, (_, row) => words.map((word, place) => words[(place * 7 + row * 5 + (row >> 4)) % words.length]).join(" "));
  const began = performance.now();
  try {
    const { usage } = await ask("/v1/embeddings", { input: texts, encoding_format: "base64" });
    const seconds = (performance.now() - began) / 1000;
    speed.textContent = `${format.format(Math.round(texts.length / seconds))} sentences/s, ${format.format(Math.round(usage.total_tokens / seconds))} tokens/s`;
  } catch (error) {
    speed.textContent = error.message;
  }
  button.disabled = false;
}

export const modelTab = {
  setUp(shared) {
    state = shared;
    text.addEventListener("input", () => showTokens());
    document.querySelector("#measure").addEventListener("click", measure);
  },
  show() {
    if (!state.info) return;
    showCards();
    showTokens();
  },
};
