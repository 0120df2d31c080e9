// Tabs, the choice of a collection and of colours; each tab is a module of its own.
import { ask, askForKey, element, format, keptKey, showNotice } from "/page/api.js";
import { compareTab } from "/page/compare.js";
import { duplicatesTab } from "/page/duplicates.js";
import { mapTab } from "/page/map.js";
import { modelTab } from "/page/model.js";
import { searchTab } from "/page/search.js";
import { setUpUpload } from "/page/upload.js";

const tabs = { search: searchTab, compare: compareTab, map: mapTab, duplicates: duplicatesTab, model: modelTab };
const state = { info: null, collections: [], collection: null, keepsCollections: false };
const picker = document.querySelector("#collection");

export async function loadCollections(chosen) {
  try {
    state.collections = (await ask("/v1/collections")).data;
    state.keepsCollections = true;
  } catch (error) {
    if (error.status !== 404) throw error;
    state.collections = [];
  }
  const usable = state.collections.filter((each) => each.is_usable);
  const name = chosen ?? localStorage.getItem("gemel-collection");
  const fullest = [...usable].sort((a, b) => b.n_records - a.n_records)[0];
  state.collection = usable.find((each) => each.name === name) ?? fullest ?? null;
  picker.replaceChildren(
    ...state.collections.map((each) =>
      element(
        "option",
        { value: each.name, selected: each === state.collection, disabled: !each.is_usable },
        `${each.name} (${each.is_usable ? format.format(each.n_records) : each.error ? "damaged" : "another model"})`,
      ),
    ),
  );
  if (!state.collections.length) picker.append(element("option", {}, "No collection"));
  picker.disabled = !usable.length;
  document.querySelector("#upload-open").disabled = !state.keepsCollections;
  document.querySelector("#known-names").replaceChildren(...usable.map((each) => element("option", { value: each.name })));
}

function show(name) {
  for (const each of Object.keys(tabs)) {
    const isShown = each === name;
    const tab = document.querySelector(`#tab-${each}`);
    tab.setAttribute("aria-selected", String(isShown));
    tab.tabIndex = isShown ? 0 : -1;
    document.querySelector(`#panel-${each}`).hidden = !isShown;
  }
  showNotice("");
  document.title = `${name[0].toUpperCase()}${name.slice(1)} · gemel`;
  tabs[name].show(state);
}

const shown = () => document.querySelector("[role=tab][aria-selected=true]").id.slice(4);

function setUpTabs() {
  const names = Object.keys(tabs);
  for (const name of names) {
    const tab = document.querySelector(`#tab-${name}`);
    tab.addEventListener("click", () => {
      history.replaceState(null, "", `#${name}`);
      show(name);
    });
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const next = event.key === "Home" ? names[0] : event.key === "End" ? names.at(-1) : step && names.at((names.indexOf(name) + step) % names.length);
      if (!next) return;
      event.preventDefault();
      const other = document.querySelector(`#tab-${next}`);
      other.click();
      other.focus();
    });
  }
}

function setUpTheme() {
  const isDark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const redraw = () => tabs[shown()].show(state);
  document.querySelector("#theme").addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("gemel-theme", theme);
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

function setUpKey() {
  const button = document.querySelector("#key-open");
  button.hidden = !keptKey();
  button.addEventListener("click", async () => {
    if (await askForKey("")) await begin();
  });
  document.querySelector("#key-cancel").addEventListener("click", () => document.querySelector("#key-dialog").close());
}

async function start() {
  setUpTabs();
  setUpTheme();
  setUpKey();
  for (const tab of Object.values(tabs)) tab.setUp(state);
  setUpUpload(async (name) => {
    await loadCollections(name);
    localStorage.setItem("gemel-collection", name);
    showNotice("");
    tabs[shown()].show(state);
  });
  picker.addEventListener("change", () => {
    state.collection = state.collections.find((each) => each.name === picker.value);
    localStorage.setItem("gemel-collection", picker.value);
    showNotice("");
    tabs[shown()].show(state);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.closest("input, textarea, select, dialog")) {
      event.preventDefault();
      show("search");
      document.querySelector("#query").focus();
    }
  });
  await begin();
}

async function begin() {
  try {
    state.info = await ask("/info");
    await loadCollections(state.collection?.name);
  } catch (error) {
    showNotice(error.message);
    return;
  }
  const asked = location.hash.slice(1);
  show(asked in tabs ? asked : "search");
  document.documentElement.dataset.ready = "";
}

start();
