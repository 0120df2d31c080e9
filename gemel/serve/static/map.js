// A map of the collection: each dot a text, each colour a cluster; hover, zoom, lasso to list.
import { ask, colour, element, emptyState, format, lazily, sharp } from "/page/api.js";

// Okabe and Ito's colours and some of Paul Tol's, told apart by colour-blind readers.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#a8497a", "#3f9c4d", "#b55ab5", "#a3a33a", "#6699cc", "#b0533c"];
const LISTED = 100;
const canvas = document.querySelector("#map-canvas");
const tip = document.querySelector("#map-tip");
const status = document.querySelector("#map-status");
const legend = document.querySelector("#legend");
const picked = document.querySelector("#picked");
const pickedTitle = document.querySelector("#picked-title");
const method = document.querySelector("#map-method");
const lassoButton = document.querySelector("#map-lasso");
let state, known = null, shownTexts = null, summary = "", data = null, chosen = null, selection = null;
let view = { x: 0, y: 0, zoom: 1 }, base = 1, size = { width: 1, height: 1 }, hovered = -1;
let dragging = null, lasso = null, fingers = new Map(), frame = 0;

const colourOf = (label) => (label >= 0 && label < COLOURS.length ? COLOURS[label] : colour("--strong-line"));
const toScreen = ([x, y]) => [size.width / 2 + (x - view.x) * base * view.zoom, size.height / 2 - (y - view.y) * base * view.zoom];
const toMap = (x, y) => [view.x + (x - size.width / 2) / (base * view.zoom), view.y - (y - size.height / 2) / (base * view.zoom)];

function redraw() {
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(draw);
}

function draw() {
  const { pen, width, height } = sharp(canvas);
  if (!width) return; // hidden
  size = { width, height };
  pen.clearRect(0, 0, width, height);
  if (!data) return;
  base = Math.min(width, height) / data.extent;
  const radius = Math.min(7, Math.max(1.6, 90 / Math.sqrt(data.places.length)) * Math.sqrt(view.zoom));
  const grey = colour("--strong-line");
  const isPale = (row) => (selection ? !selection.has(row) : chosen !== null && data.labels[row] !== chosen);
  for (const pale of [true, false]) {
    for (const [label, rows] of data.rowsOf) {
      pen.fillStyle = label >= 0 && label < COLOURS.length ? COLOURS[label] : grey;
      pen.globalAlpha = pale ? 0.12 : label < 0 ? 0.35 : 0.75;
      pen.beginPath();
      for (const row of rows) {
        if (isPale(row) !== pale) continue;
        const [x, y] = toScreen(data.places[row]);
        if (x < -9 || y < -9 || x > width + 9 || y > height + 9) continue;
        pen.moveTo(x + radius, y);
        pen.arc(x, y, radius, 0, 7);
      }
      pen.fill();
    }
  }
  pen.globalAlpha = 1;
  nameClusters(pen);
  if (hovered >= 0) ring(pen, toScreen(data.places[hovered]), radius + 3);
  if (lasso) trace(pen);
}

// The key words of the largest clusters, where their dots are; one that would cover another is left out.
function nameClusters(pen) {
  pen.font = `600 13px ${colour("--sans")}`;
  pen.textAlign = "center";
  pen.lineJoin = "round";
  pen.lineWidth = 4;
  pen.strokeStyle = colour("--card");
  pen.fillStyle = colour("--ink");
  const taken = [];
  for (const each of data.clusters.slice(0, COLOURS.length)) {
    if (selection || (chosen !== null && each.cluster !== chosen)) continue;
    const words = each.key_words.slice(0, 2).join(", ");
    const [x, y] = toScreen(data.middleOf.get(each.cluster));
    const half = pen.measureText(words).width / 2 + 4;
    if (taken.some(([tx, ty, th]) => Math.abs(ty - y) < 18 && Math.abs(tx - x) < th + half)) continue;
    taken.push([x, y, half]);
    pen.strokeText(words, x, y);
    pen.fillText(words, x, y);
  }
}

function ring(pen, [x, y], radius) {
  pen.strokeStyle = colour("--ink");
  pen.lineWidth = 2;
  pen.beginPath();
  pen.arc(x, y, radius, 0, 7);
  pen.stroke();
}

function trace(pen) {
  pen.strokeStyle = colour("--accent");
  pen.fillStyle = colour("--accent");
  pen.lineWidth = 2;
  pen.beginPath();
  for (const [x, y] of lasso) pen.lineTo(x, y);
  pen.closePath();
  pen.stroke();
  pen.globalAlpha = 0.08;
  pen.fill();
  pen.globalAlpha = 1;
}

function nearestTo(x, y, reach = 14) {
  let best = -1, least = reach * reach;
  data?.places.forEach((place, row) => {
    const [px, py] = toScreen(place);
    const distance = (px - x) ** 2 + (py - y) ** 2;
    if (distance < least) [best, least] = [row, distance];
  });
  return best;
}

function hover(x, y) {
  hovered = nearestTo(x, y);
  tip.hidden = hovered < 0;
  if (hovered >= 0) {
    tip.textContent = data.texts[hovered].slice(0, 240);
    tip.style.left = `${Math.max(6, Math.min(x + 14, size.width - tip.offsetWidth - 6))}px`;
    tip.style.top = `${y > size.height / 2 ? y - tip.offsetHeight - 12 : y + 14}px`;
  }
  redraw();
}

function zoomBy(factor, x = size.width / 2, y = size.height / 2) {
  const before = toMap(x, y);
  view.zoom = Math.min(60, Math.max(0.6, view.zoom * factor));
  const after = toMap(x, y);
  view.x += before[0] - after[0];
  view.y += before[1] - after[1];
  redraw();
}

function isWithin([x, y], outline) {
  let within = false;
  for (let i = 0, j = outline.length - 1; i < outline.length; j = i++) {
    const [xi, yi] = outline[i], [xj, yj] = outline[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) within = !within;
  }
  return within;
}

function endLasso() {
  const outline = lasso;
  lasso = null;
  if (data && outline.length > 2) {
    const rows = data.places.flatMap((place, row) => (isWithin(toScreen(place), outline) ? [row] : []));
    selection = rows.length ? new Set(rows) : null;
    chosen = null;
    markLegend();
    list(rows, `${format.format(rows.length)} texts within the lasso`);
  }
  redraw();
}

function list(rows, title) {
  pickedTitle.hidden = !rows.length;
  pickedTitle.textContent = rows.length > LISTED ? `${title}, the first ${LISTED}` : title;
  picked.replaceChildren(
    ...rows.slice(0, LISTED).map((row) => {
      const swatch = element("i", { class: "swatch" });
      swatch.style.background = colourOf(data.labels[row]);
      return element("li", {}, swatch, element("span", {}, data.texts[row]));
    }),
  );
}

function choose(label) {
  chosen = chosen === label ? null : label;
  selection = null;
  markLegend();
  list(chosen === null ? [] : data.rowsOf.get(chosen), chosen === null ? "" : `Cluster of ${format.format(data.rowsOf.get(chosen).length)} texts`);
  redraw();
}

function markLegend() {
  for (const button of legend.querySelectorAll("button")) button.setAttribute("aria-pressed", String(Number(button.dataset.label) === chosen));
}

function showLegend() {
  legend.replaceChildren(
    ...data.clusters.slice(0, 60).map((each) => {
      const swatch = element("i", { class: "swatch" });
      swatch.style.background = colourOf(each.cluster);
      const words = each.key_words.slice(0, 4).join(", ") || `cluster ${each.cluster + 1}`;
      return element("li", {}, element("button", { type: "button", "aria-pressed": "false", "data-label": each.cluster, title: each.typical[0], on: { click: () => choose(each.cluster) } }, swatch, element("span", {}, words), element("small", {}, format.format(each.size))));
    }),
  );
}

const median = (numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1];

function take(found) {
  const rowsOf = new Map();
  found.labels.forEach((label, row) => rowsOf.get(label)?.push(row) ?? rowsOf.set(label, [row]));
  const [xs, ys] = [0, 1].map((axis) => found.places.map((place) => place[axis]));
  const low = [Math.min(...xs), Math.min(...ys)], high = [Math.max(...xs), Math.max(...ys)];
  data = { ...found, rowsOf: new Map([...rowsOf].sort(([a], [b]) => (a < 0 ? -1 : b < 0 ? 1 : b - a))), clusters: found.data };
  data.extent = 1.08 * Math.max(high[0] - low[0], high[1] - low[1], 1e-6);
  data.centre = [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2];
  data.middleOf = new Map([...rowsOf].map(([label, rows]) => [label, [0, 1].map((axis) => median(rows.map((row) => found.places[row][axis])))]));
  reset();
  showLegend();
}

function reset() {
  if (data) view = { x: data.centre[0], y: data.centre[1], zoom: 1 };
  hovered = -1;
  tip.hidden = true;
  redraw();
}

// The map of one collection must not be shown under another's name.
function forget() {
  known = shownTexts = data = chosen = selection = lasso = null;
  list([], "");
  legend.replaceChildren();
  status.textContent = summary = "";
  reset();
}

const load = lazily(0, async (signal) => {
  const { name, n_records: n } = state.collection;
  const texts = `${name} ${n}`, wanted = `${texts} ${method.value}`;
  if (known === wanted) {
    status.textContent = summary;
    return redraw();
  }
  if (shownTexts !== texts) forget();
  status.textContent = "Finding clusters…";
  const began = performance.now();
  const n_clusters = Math.min(Number(method.value) || 0, n);
  const choice = n_clusters ? { method: "kmeans", n_clusters } : { method: "star" };
  let found;
  try {
    found = await ask("/v1/cluster", { collection: name, map: true, return_texts: true, ...choice }, signal);
  } catch (error) {
    if (error.name !== "AbortError") forget();
    throw error;
  }
  known = wanted;
  shownTexts = texts;
  chosen = selection = null;
  list([], "");
  take(found);
  const none = found.n_unclustered ? `, ${format.format(found.n_unclustered)} texts in none` : "";
  status.textContent = summary = `${format.format(found.data.length)} clusters of ${format.format(n)} texts${none} (${((performance.now() - began) / 1000).toFixed(1)} s)`;
});

function setUpPointer() {
  const place = (event) => [event.offsetX, event.offsetY];
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, place(event));
    if (lassoButton.getAttribute("aria-pressed") === "true" || event.shiftKey) lasso = [place(event)];
    else dragging = place(event);
    tip.hidden = true;
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    if (fingers.size === 2 && fingers.has(event.pointerId)) return pinch(event, x, y);
    if (lasso) lasso.push([x, y]);
    else if (dragging) {
      view.x -= (x - dragging[0]) / (base * view.zoom);
      view.y += (y - dragging[1]) / (base * view.zoom);
      dragging = [x, y];
    } else return hover(x, y);
    redraw();
  });
  for (const end of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(end, (event) => {
      fingers.delete(event.pointerId);
      dragging = null;
      if (lasso) endLasso();
      else if (event.pointerType === "touch") hover(...place(event));
    });
  }
  canvas.addEventListener("pointerleave", () => {
    hovered = -1;
    tip.hidden = true;
    redraw();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoomBy(Math.exp(-event.deltaY * 0.0015), event.offsetX, event.offsetY);
  }, { passive: false });
}

function pinch(event, x, y) {
  const span = () => {
    const [[ax, ay], [bx, by]] = fingers.values();
    return Math.hypot(ax - bx, ay - by);
  };
  const before = span();
  fingers.set(event.pointerId, [x, y]);
  dragging = lasso = null;
  const [[ax, ay], [bx, by]] = fingers.values();
  zoomBy(span() / before, (ax + bx) / 2, (ay + by) / 2);
}

function setUpKeys() {
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "+" || event.key === "=") zoomBy(1.4);
    else if (event.key === "-") zoomBy(1 / 1.4);
    else if (event.key === "0" || event.key === "Escape") reset();
    else if (steps[event.key]) {
      view.x += (steps[event.key][0] * 40) / (base * view.zoom);
      view.y += (steps[event.key][1] * 40) / (base * view.zoom);
      redraw();
    } else return;
    event.preventDefault();
  });
}

export const mapTab = {
  setUp(shared) {
    state = shared;
    setUpPointer();
    setUpKeys();
    method.addEventListener("change", () => mapTab.show());
    lassoButton.addEventListener("click", () => {
      const isOn = lassoButton.getAttribute("aria-pressed") !== "true";
      lassoButton.setAttribute("aria-pressed", String(isOn));
      canvas.classList.toggle("lasso", isOn);
    });
    document.querySelector("#map-in").addEventListener("click", () => zoomBy(1.5));
    document.querySelector("#map-out").addEventListener("click", () => zoomBy(1 / 1.5));
    document.querySelector("#map-reset").addEventListener("click", reset);
    new ResizeObserver(redraw).observe(canvas);
  },
  show() {
    const hasTexts = state.collection?.n_records > 2;
    document.querySelector(".split.map").hidden = !hasTexts;
    if (hasTexts) return load();
    load.stop();
    forget();
    picked.replaceChildren(emptyState("Nothing to draw yet", "Choose a collection with three texts or more, or bring a file with “Add texts”."));
  },
};
