// The server's routes, and the few things that every tab needs.

export const format = new Intl.NumberFormat("en");

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export async function ask(path, body, signal) {
  for (;;) {
    const headers = {};
    const key = keptKey();
    if (key) headers.authorization = `Bearer ${key}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    let answer;
    try {
      answer = await fetch(path, {
        method: body === undefined ? "GET" : "POST",
        headers,
        body: body === undefined ? undefined : JSON.stringify(body),
        signal,
      });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refused(0, "The server does not answer. Is gemel serve still running?");
    }
    if (answer.status !== 401) usedKey = key;
    if (answer.ok) return answer.json();
    const said = await answer.json().catch(() => ({}));
    const reason = said.error?.message ?? said.error ?? `The server answered ${answer.status}.`;
    if (answer.status === 401 || (answer.status === 403 && key)) {
      const problem = answer.status === 403 ? reason : key ? "That key was refused; give another." : "";
      // Another request may have asked for a key meanwhile.
      if (keptKey() !== key || (await askForKey(problem))) continue;
      throw new Refused(answer.status, problem || "This server needs a key: give one with “Key” above.");
    }
    if (answer.status === 429 || (answer.status === 503 && said.error?.code === "busy")) {
      await pause(1000 * (Number(answer.headers.get("retry-after")) || 1));
      continue;
    }
    throw new Refused(answer.status, reason);
  }
}

let keyAsked = null;
let usedKey = null; // the last one that the server has taken

export const keptKey = () => sessionStorage.getItem("gemel-key");

function keepKey(key) {
  if (key) sessionStorage.setItem("gemel-key", key);
  else sessionStorage.removeItem("gemel-key");
}

// Whether a key was given; one dialog, however many requests were refused.
export function askForKey(problem) {
  keyAsked ??= new Promise((resolve) => {
    const dialog = document.querySelector("#key-dialog"), field = document.querySelector("#key");
    document.querySelector("#key-open").hidden = false;
    dialog.returnValue = "";
    dialog.showModal();
    document.querySelector("#key-problem").textContent = problem;
    field.setAttribute("aria-invalid", String(Boolean(problem)));
    dialog.addEventListener(
      "close",
      () => {
        const given = dialog.returnValue === "use" ? field.value.trim() : "";
        keepKey(given || usedKey);
        field.value = "";
        keyAsked = null;
        resolve(Boolean(given));
      },
      { once: true },
    );
  });
  return keyAsked;
}

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    else if (key === "class") made.className = value;
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value != null) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

export function emptyState(title, ...rest) {
  return element("div", { class: "empty" }, element("strong", {}, title), ...rest);
}

// Runs work after a pause in which it is not asked for again; what is still running then is given up.
export function lazily(milliseconds, work) {
  let timer, running;
  const stop = () => {
    clearTimeout(timer);
    running?.abort();
  };
  const begin = (...given) => {
    stop();
    timer = setTimeout(async () => {
      running = new AbortController();
      try {
        await work(running.signal, ...given);
      } catch (error) {
        if (error.name !== "AbortError") showNotice(error.message);
      }
    }, milliseconds);
  };
  return Object.assign(begin, { stop });
}

export function showNotice(message) {
  const notice = document.querySelector("#notice");
  notice.textContent = message;
  notice.hidden = !message;
}

export function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A canvas in the screen's own pixels.
export function sharp(canvas) {
  const { width, height } = canvas.getBoundingClientRect();
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { pen, width, height };
}
