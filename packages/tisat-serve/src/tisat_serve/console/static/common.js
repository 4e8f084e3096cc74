// What every page has: the reader's own time, forms that send JSON, live updates, keys.

export const $ = (selector, where = document) => where.querySelector(selector);
export const all = (selector, where = document) => [...where.querySelectorAll(selector)];
export const data = (id) => JSON.parse(document.getElementById(id).textContent);
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const two = (n) => String(n).padStart(2, "0");

// The moment in the reader's time; only the clock where long is false, with seconds where it is null.
export function local(seconds, long = true, fine = false) {
  const t = new Date(1000 * seconds), off = -t.getTimezoneOffset();
  const clock = `${two(t.getHours())}:${two(t.getMinutes())}`;
  if (!long) return long === null ? `${clock}:${two(t.getSeconds())}` : clock;
  const zone = `${off < 0 ? "-" : "+"}${two(Math.floor(Math.abs(off) / 60))}:${two(Math.abs(off) % 60)}`;
  return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${clock}${fine ? `:${two(t.getSeconds())}` : ""} ${zone}`;
}

export function short(seconds) {
  const t = new Date(1000 * seconds), year = t.getFullYear() === new Date().getFullYear() ? "" : `${t.getFullYear()}-`;
  return `${year}${two(t.getMonth() + 1)}-${two(t.getDate())} ${two(t.getHours())}:${two(t.getMinutes())}`;
}

export function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e9 || size < 1e-5) return value.toExponential(3);
  return value.toLocaleString("en", { maximumFractionDigits: Math.max(0, 3 - Math.floor(Math.log10(size))) });
}

export function stretch(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  let left = Math.abs(seconds);
  const sign = seconds < 0 ? "-" : "";
  if (left < 60) return `${sign}${Math.round(left)} s`;
  const parts = [];
  for (const [name, size] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count) parts.push(`${count} ${name}`);
  }
  return sign + parts.slice(0, 2).join(" ");
}

export async function ask(address, signal) {
  const answer = await fetch(address, { headers: { Accept: "application/json" }, signal });
  if (answer.status === 401) { location.href = `/login?next=${encodeURIComponent(location.pathname + location.search)}`; }
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error || answer.statusText);
  return body;
}

export async function tell(address, body) {
  const answer = await fetch(address, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(said.error || answer.statusText);
  return said;
}

export function tip(text, x, y) {
  let box = $("#tip");
  if (!box) { box = document.body.appendChild(document.createElement("div")); box.id = "tip"; }
  box.textContent = text;
  if (text) { box.style.left = `${Math.min(x + 12, innerWidth - box.offsetWidth - 8)}px`; box.style.top = `${y + 16}px`; }
}

function localise(where = document) {
  for (const one of all("time[data-t]", where)) {
    one.title = one.textContent;
    one.textContent = local(Number(one.dataset.t), true, "fine" in one.dataset);
  }
}

// ---------------------------------------------------------------- forms

function value(field) {
  const kind = field.dataset.kind;
  if (kind === "truth") return field.checked;
  if (field.value === "") return field.dataset.empty === "null" ? null : kind ? undefined : "";
  if (kind === "number") return Number(field.value);
  if (kind === "moment") return new Date(field.value).getTime() / 1000;
  return field.value;
}

// Free ranges: the clock of a field is the reader's, and the server is told how far that is from UTC.
function ranged(where = document) {
  for (const one of all("input[data-clock]", where)) {
    const t = new Date(1000 * Number(one.dataset.clock));
    one.value = `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())}T${two(t.getHours())}:${two(t.getMinutes())}`;
  }
  for (const one of all("input[data-zone]", where)) one.value = -new Date().getTimezoneOffset();
}

function remembered(where = document) {
  for (const one of all("[data-remember]", where)) {
    if (!one.value) one.value = localStorage.getItem(`tisat.${one.dataset.remember}`) || "";
  }
  for (const one of all("input[data-default]", where)) {
    const t = new Date(Date.now() + 1000 * Number(one.dataset.default));
    if (!one.value) one.value = `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())}T${two(t.getHours())}:${two(t.getMinutes())}`;
  }
}

async function send(form, submitter) {
  const said = $(".said", form), body = {};
  for (const field of form.elements) {
    if (!field.name || (field.tagName === "BUTTON" && field !== submitter)) continue;
    const found = value(field);
    if (found !== undefined) body[field.name] = found;
    if (field.dataset.remember && field.value) localStorage.setItem(`tisat.${field.dataset.remember}`, field.value);
  }
  try {
    await tell(form.dataset.post, body);
    if (form.dataset.then === "reload") location.reload();
    else location.href = form.dataset.then;
  } catch (error) { said.textContent = error.message; }
}

document.addEventListener("submit", (event) => {
  if (event.target.dataset.post) { event.preventDefault(); send(event.target, event.submitter); }
});
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-action]");
  if (!button) return;
  try {
    await tell(button.dataset.action, { author: localStorage.getItem("tisat.author") || "", reason: "" });
    location.reload();
  } catch (error) { toast(error.message); }
});

// ---------------------------------------------------------------- live

export function toast(text, address, good = false) {
  const box = $("#toasts").appendChild(document.createElement("div"));
  box.className = `toast${good ? " good" : ""}`;
  if (address) {
    const link = box.appendChild(document.createElement("a"));
    link.href = address;
    link.textContent = text;
  } else box.textContent = text;
  setTimeout(() => box.remove(), 12000);
}

let waiting = null;

export async function refresh() {
  waiting = null;
  if (document.hidden || document.activeElement?.closest("form")) return;
  const parts = all("[data-live]"), page = parts.length > 1 ? location.href : "/care"; // the cheapest page, for its problems
  const answer = await fetch(page, { headers: { Accept: "text/html" } });
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of parts) {
    const now = fresh.getElementById(part.id);
    if (!now) continue;
    part.replaceChildren(...now.childNodes);
    for (const prepare of [localise, remembered, ranged]) prepare(part);
  }
  if (page === location.href) document.title = fresh.title;
  document.dispatchEvent(new CustomEvent("tisat:fresh"));
}

function soon() { waiting ??= setTimeout(refresh, 700); }

function listen() {
  if (!$("[data-live]")) { $("#live").hidden = true; return; }
  const sign = $("#live"), stream = new EventSource("/api/v1/events");
  const show = (on, text) => { sign.className = `live ${on ? "on" : "off"}`; $("b", sign).textContent = text; };
  stream.onopen = () => show(true, "live");
  stream.onerror = () => show(false, "not connected");
  for (const what of ["raised", "grown"]) stream.addEventListener(what, (event) => {
    const one = JSON.parse(event.data);
    toast(`${one.entity}: alarm`, `/alarm/${one.alarm}`);
    soon();
  });
  stream.addEventListener("joined", (event) => {
    const one = JSON.parse(event.data);
    toast(`${one.entity}: further channels`, `/alarm/${one.alarm}`);
    soon();
  });
  stream.addEventListener("cleared", (event) => {
    const one = JSON.parse(event.data);
    toast(`${one.entity}: over`, `/alarm/${one.alarm}`, true);
    soon();
  });
  for (const what of ["ongoing", "accepted", "label", "acknowledged", "forgotten", "proposal", "threshold"]) stream.addEventListener(what, soon);
  addEventListener("pagehide", () => stream.close());
  setInterval(() => { if (!document.hidden) refresh(); }, 30000);
}

// ---------------------------------------------------------------- keys

let first = "";
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  const places = { f: "/", a: "/alarms", b: "/budget", w: "/whatif", p: "/proposals", m: "/care" };
  if (first === "g" && places[event.key]) { location.href = places[event.key]; return; }
  first = event.key;
  if (event.key === "?") $("#help").showModal();
  if (event.key === "/" && $("input[type=search]")) { event.preventDefault(); $("input[type=search]").focus(); }
  if (event.key === "j" || event.key === "k") {
    const rows = all("[data-row] a").filter((one, k, list) => k === 0 || one.closest("[data-row]") !== list[k - 1].closest("[data-row]"));
    const at = rows.findIndex((one) => one.closest("[data-row]") === document.activeElement?.closest("[data-row]"));
    const next = rows[at < 0 ? 0 : at + (event.key === "j" ? 1 : -1)];
    if (next) { next.focus(); next.scrollIntoView({ block: "nearest" }); }
  }
  const choice = $(`button[data-key="${event.key}"]`);
  if (choice) choice.click();
});

localise();
remembered();
ranged();
listen();
