// Pasted sentences: all similarities as a table of colours, and the nearest pairs.
import { ask, colour, element, emptyState, format, lazily } from "/page/api.js";

const MOST = 40;
const EXAMPLES = [
  "A man is eating food.",
  "Someone is having a meal.",
  "The girl is carrying a baby.",
  "A woman is playing the violin.",
  "A musician performs on stage.",
  "A cheetah is running behind its prey.",
  "A fast cat hunts an antelope.",
  "The stock market fell sharply today.",
];
const box = document.querySelector("#sentences");
const heat = document.querySelector("#heat");
const nearest = document.querySelector("#nearest");
const status = document.querySelector("#compare-status");

const run = lazily(150, async (signal) => {
  const given = box.value.split("\n").map((line) => line.trim()).filter(Boolean);
  const texts = given.slice(0, MOST);
  if (texts.length < 2) {
    status.textContent = "";
    nearest.replaceChildren();
    heat.replaceChildren(emptyState("Two sentences or more", "Write one a line, and see how alike they are."));
    return;
  }
  const began = performance.now();
  const { scores } = await ask("/v1/similarity", { a: texts, matrix: true }, signal);
  const milliseconds = Math.max(1, Math.round(performance.now() - began));
  const cut = given.length > MOST ? `; the first ${MOST} of ${format.format(given.length)} are shown` : "";
  status.textContent = `${texts.length} sentences, ${(texts.length * (texts.length - 1)) / 2} pairs in ${milliseconds} ms${cut}`;
  heat.replaceChildren(table(texts, scores));
  const pairs = texts.flatMap((_, i) => texts.slice(i + 1).map((_, offset) => [scores[i][i + 1 + offset], i, i + 1 + offset]));
  pairs.sort((a, b) => b[0] - a[0]);
  nearest.replaceChildren(
    ...pairs.slice(0, 5).map(([score, i, j]) =>
      element("li", {}, element("b", {}, score.toFixed(3)), element("div", {}, texts[i], element("br"), texts[j])),
    ),
  );
});

const channels = (name) => colour(name).match(/[0-9a-f]{2}/gi).map((pair) => parseInt(pair, 16));

// A cell between two colours, its figure black or white: whichever can be read on it.
function paint(cell, share, from, to) {
  const mixed = from.map((low, at) => Math.round(low + share * (to[at] - low)));
  const [red, green, blue] = mixed.map((each) => (each / 255 <= 0.04045 ? each / 255 / 12.92 : ((each / 255 + 0.055) / 1.055) ** 2.4));
  cell.style.background = `rgb(${mixed.join(" ")})`;
  cell.style.color = 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
}

function table(texts, scores) {
  const from = channels("--card"), to = channels("--accent");
  const head = element("tr", {}, element("td"), ...texts.map((text, row) => element("th", { scope: "col", title: text }, String(row + 1))));
  const rows = texts.map((text, i) => {
    const cells = scores[i].map((score, j) => {
      const cell = element("td", { title: `${text}\n${texts[j]}` }, i === j ? "" : score.toFixed(2));
      if (i === j) cell.style.background = "var(--line)";
      else paint(cell, 0.05 + 0.95 * Math.min(1, Math.max(0, score)), from, to);
      return cell;
    });
    return element("tr", {}, element("th", { scope: "row", title: text }, `${i + 1}. ${text}`), ...cells);
  });
  return element("table", { class: "heat" }, element("thead", {}, head), element("tbody", {}, ...rows));
}

export const compareTab = {
  setUp() {
    box.value = EXAMPLES.join("\n");
    box.addEventListener("input", () => run());
  },
  show: () => run(),
};
