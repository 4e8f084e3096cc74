// The slider: what another threshold would have done with every row that is kept.
import { $, ask, data, local, number, stretch } from "/static/common.js";

const box = $("#whatif");
const SVG = "http://www.w3.org/2000/svg";

function asked(more) {
  const query = new URLSearchParams(more);
  if (box.dataset.entity) query.set("entity", box.dataset.entity); else query.set("group", box.dataset.group);
  if (box.dataset.start) { query.set("start", box.dataset.start); query.set("stop", box.dataset.stop); }
  return `/api/v1/whatif?${query}`;
}

function mark(name, attributes, title) {
  const one = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
  if (title) one.appendChild(document.createElementNS(SVG, "title")).textContent = title;
  return one;
}

function lanes(found) {
  const svg = $("#lanes"), width = svg.clientWidth, start = Number(box.dataset.start || before.start), stop = Number(box.dataset.stop || before.stop);
  const x = (t) => 90 + ((Math.min(Math.max(t, start), stop) - start) / Math.max(stop - start, 1)) * (width - 100);
  const parts = [];
  for (const [y, name] of [[8, "as it was"], [50, "as it would be"]]) {
    parts.push(mark("rect", { class: "lane", x: 90, y, width: Math.max(width - 100, 1), height: 30, rx: 4 }));
    const text = mark("text", { x: 0, y: y + 20 });
    text.textContent = name;
    parts.push(text);
  }
  const draw = (list, y, gone) => {
    for (const one of list) {
      const from = x(one.raised), to = x(one.cleared ?? stop);
      parts.push(mark("rect", { class: `m-${(one.label || "none").replace(" ", "-")}${gone(one) ? " gone" : ""}`, x: from, y: y + 4, width: Math.max(to - from, 3), height: 22, rx: 2 },
        `${one.entity}, ${local(one.raised)}${one.label ? `, ${one.label}` : ""}`));
    }
  };
  const avoided = new Set(found.avoided);
  draw(before.alarms, 8, (one) => avoided.has(one.was));
  draw(found.alarms, 50, () => false);
  svg.setAttribute("viewBox", `0 0 ${width} 92`);
  svg.replaceChildren(...parts);
}

function table(found) {
  $("#whatif-rows").replaceChildren(...found.alarms.slice(0, 50).map((one) => {
    const row = document.createElement("tr");
    const cells = [local(one.raised), one.entity, one.cleared === null ? "on" : stretch(one.cleared - one.raised), "", one.delay === null ? "" : stretch(one.delay)];
    cells.forEach((text, k) => {
      const place = row.appendChild(document.createElement("td"));
      if (k === 4) place.className = "figure";
      if (k === 3 && one.was) {
        const link = place.appendChild(document.createElement("a"));
        link.href = `/alarm/${encodeURIComponent(one.was)}`;
        link.textContent = one.label || "unmarked";
      } else place.textContent = k === 3 ? "new" : text;
    });
    return row;
  }));
}

function show(found, factor) {
  $("#threshold").textContent = number(found.threshold);
  $("#times").textContent = `${number(factor)} × today's`;
  $("#f-before").textContent = found.before;
  $("#f-after").textContent = found.alarms.length;
  $("#f-allowed").textContent = number(found.allowed);
  $("#f-avoided").textContent = found.avoided_false;
  $("#f-lost").textContent = found.lost_true;
  $("#sentences").replaceChildren(...found.sentences.map((text) => {
    const one = document.createElement("p");
    one.textContent = text;
    return one;
  }));
  lanes(found);
  table(found);
}

let running = null, before = null;

async function look(query, note) {
  running?.abort();
  running = new AbortController();
  try {
    const found = await ask(asked(query), running.signal);
    show(found, found.threshold / Number(box.dataset.threshold));
    return found;
  } catch (error) {
    if (error.name !== "AbortError") $("#sentences").textContent = error.message;
  }
  return null;
}

if (box) {
  before = data("whatif-data");
  const moments = before.alarms.flatMap((one) => [one.raised, one.cleared ?? one.raised]);
  before.start = Math.min(...moments, Date.now() / 1000);
  before.stop = Math.max(...moments, before.start + 1);
  show(before, 1);
  const slider = $("#slider");
  slider.addEventListener("input", () => look({ threshold: Number(box.dataset.threshold) * 2 ** (slider.value / 100) }));
  $("#budget").addEventListener("change", async (event) => {
    if (!event.target.value) return;
    const found = await look({ budget: event.target.value });
    if (found) slider.value = Math.round(100 * Math.log2(found.threshold / Number(box.dataset.threshold)));
  });
  $("#reset").addEventListener("click", () => { slider.value = 0; $("#budget").value = ""; show(before, 1); });
  addEventListener("resize", () => lanes(before));
}
