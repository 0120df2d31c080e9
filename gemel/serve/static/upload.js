// A file of texts into a collection, some at a time, with progress.
import { ask, element, format, Refused } from "/page/api.js";

const AT_ONCE = 256;
const dialog = document.querySelector("#upload");
const file = document.querySelector("#upload-file");
const column = document.querySelector("#upload-column");
const found = document.querySelector("#upload-found");
const progress = document.querySelector("#upload-progress");
const problem = document.querySelector("#upload-error");
const start = document.querySelector("#upload-start");
let table = null, stopped = false, isRunning = false;

// Rows of fields out of CSV: quotes may hold separators, line ends and doubled quotes.
export function parseCsv(text, separator = ",") {
  const rows = [];
  let row = [], field = "", isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const letter = text[at];
    if (isQuoted) {
      if (letter !== '"') field += letter;
      else if (text[at + 1] === '"') field += text[++at];
      else isQuoted = false;
    } else if (letter === '"' && field === "") isQuoted = true;
    else if (letter === separator) row.push(field), (field = "");
    else if (letter === "\n") row.push(field.replace(/\r$/, "")), rows.push(row), (row = []), (field = "");
    else field += letter;
  }
  if (field !== "" || row.length) row.push(field.replace(/\r$/, "")), rows.push(row);
  return rows.filter((each) => each.length > 1 || each[0] !== "");
}

function records(name, text) {
  if (/\.(jsonl|ndjson)$/i.test(name)) {
    return text.split("\n").filter((line) => line.trim()).map((line, number) => {
      try {
        const value = JSON.parse(line);
        return typeof value === "string" ? { text: value } : value;
      } catch {
        throw new Error(`Line ${number + 1} of ${name} is no JSON.`);
      }
    });
  }
  const separator = /\.tsv$/i.test(name) ? "\t" : /\.csv$/i.test(name) ? "," : null;
  if (!separator) return text.split(/\r?\n/).filter((line) => line.trim()).map((line) => ({ text: line.trim() }));
  const [head, ...rows] = parseCsv(text, separator);
  return rows.map((row) => Object.fromEntries((head ?? []).map((key, place) => [key, row[place] ?? ""])));
}

async function read() {
  table = null;
  problem.textContent = found.textContent = "";
  const [chosen] = file.files;
  if (!chosen) return;
  try {
    table = records(chosen.name, (await chosen.text()).replace(/^\uFEFF/, ""));
  } catch (error) {
    problem.textContent = error.message;
    return;
  }
  const columns = [...new Set(table.slice(0, 100).flatMap((row) => Object.keys(row)))];
  const longest = (name) => table.slice(0, 100).reduce((sum, row) => sum + String(row[name] ?? "").length, 0);
  const likely = columns.includes("text") ? "text" : [...columns].sort((a, b) => longest(b) - longest(a))[0];
  column.replaceChildren(...columns.map((name) => element("option", { selected: name === likely }, name)));
  document.querySelector("#upload-column-label").hidden = columns.length < 2;
  found.textContent = `${format.format(table.length)} rows`;
}

function batchOf(rows) {
  const batch = { texts: [], metadata: [] };
  const ids = [];
  const areNamed = column.value !== "id" && table.every(({ id }) => (typeof id === "string" && id !== "") || Number.isSafeInteger(id));
  for (const row of rows) {
    const { [column.value]: text, ...others } = row;
    if (typeof text !== "string" || !text.trim()) continue;
    if (areNamed) ids.push(others.id), delete others.id;
    batch.texts.push(text);
    batch.metadata.push(others);
  }
  return areNamed ? { ...batch, ids } : batch;
}

async function send(name) {
  const path = `/v1/collections/${encodeURIComponent(name)}`;
  try {
    await ask(path);
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 404) throw error;
    await ask("/v1/collections", { name });
  }
  for (let at = 0; at < table.length && !stopped; at += AT_ONCE) {
    const batch = batchOf(table.slice(at, at + AT_ONCE));
    if (batch.texts.length) await ask(`${path}/add`, batch);
    const done = Math.min(table.length, at + AT_ONCE);
    progress.value = done / table.length;
    found.textContent = `${format.format(done)} of ${format.format(table.length)} rows`;
  }
}

export function setUpUpload(onDone) {
  const name = document.querySelector("#upload-name");
  document.querySelector("#upload-open").addEventListener("click", () => {
    problem.textContent = "";
    progress.hidden = true;
    start.disabled = false;
    dialog.showModal();
  });
  file.addEventListener("change", read);
  const leave = () => {
    stopped = true;
    if (!isRunning) dialog.close();
  };
  document.querySelector("#upload-cancel").addEventListener("click", leave);
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    leave();
  });
  document.querySelector("#upload-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!table?.length) {
      problem.textContent = "Choose a file that holds texts.";
      return;
    }
    stopped = false;
    isRunning = true;
    start.disabled = true;
    problem.textContent = "";
    progress.value = 0;
    progress.hidden = false;
    try {
      await send(name.value);
      await onDone(name.value);
      dialog.close();
    } catch (error) {
      problem.textContent = error.message;
    }
    isRunning = false;
    start.disabled = false;
  });
}
