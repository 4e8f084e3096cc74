// The heat map: one strip for each entity, coloured by statistic / threshold.
import { $, all, colour, data, local, number, short, tip } from "/static/common.js";

const WORDS = { u: "cannot be judged", w: "warming up", "-": "nothing came" };
let map = null, palette = null;

function hatch(context, kind) {
  const tile = document.createElement("canvas"), unit = devicePixelRatio || 1;
  tile.width = tile.height = Math.round(6 * unit);
  const pen = tile.getContext("2d");
  pen.strokeStyle = pen.fillStyle = colour(kind === "u" ? "--warn" : "--soft");
  pen.lineWidth = 1.6 * unit;
  if (kind === "u") { pen.beginPath(); pen.moveTo(0, tile.height); pen.lineTo(tile.width, 0); pen.stroke(); }
  else { pen.beginPath(); pen.arc(tile.width / 2, tile.height / 2, 1.1 * unit, 0, 7); pen.fill(); }
  return context.createPattern(tile, "repeat");
}

function shade(ratio) {
  const stops = [[0, 0], [0.5, 1], [0.75, 2], [1, 3], [4, 4]];
  if (ratio >= 1) return palette[ratio >= 2.5 ? 4 : 3];
  let k = 0;
  while (k + 1 < stops.length && ratio >= stops[k + 1][0]) k += 1;
  return palette[stops[k][1]];
}

function draw(canvas, row) {
  const unit = devicePixelRatio || 1, width = Math.round(canvas.clientWidth * unit), height = Math.round(20 * unit);
  canvas.width = width;
  canvas.height = height;
  const pen = canvas.getContext("2d"), steps = map.times.length, patterns = {};
  for (let t = 0; t < steps; t += 1) {
    const left = Math.round((t * width) / steps), right = Math.round(((t + 1) * width) / steps);
    const ratio = map.ratio[row][t], state = map.state[row][t];
    if (state === "-" || (ratio === null && state !== "u" && state !== "w")) {
      pen.fillStyle = colour("--none");
      pen.fillRect(left, Math.round(height / 2), right - left, Math.max(1, unit));
      continue;
    }
    if (ratio === null) pen.fillStyle = patterns[state] ??= hatch(pen, state);
    else pen.fillStyle = state === "a" && ratio < 1 ? palette[3] : shade(ratio);
    pen.fillRect(left, 0, Math.max(1, right - left - (right - left > 4 ? 1 : 0)), height);
  }
}

function cell(canvas, event) {
  const box = canvas.getBoundingClientRect();
  const t = Math.min(map.times.length - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * map.times.length)));
  return [map.entities.indexOf(canvas.dataset.entity), t];
}

function show() {
  if (!$("#heat-data")) return;
  map = data("heat-data");
  palette = ["--c0", "--c1", "--c2", "--c3", "--c4"].map(colour);
  for (const canvas of all("canvas.strip")) {
    const row = map.entities.indexOf(canvas.dataset.entity);
    if (row < 0) continue;
    draw(canvas, row);
    canvas.onmousemove = (event) => {
      const [e, t] = cell(canvas, event), ratio = map.ratio[e][t];
      tip(`${canvas.dataset.name || map.entities[e]}, ${local(map.times[t])}: ${ratio === null ? WORDS[map.state[e][t]] || "nothing came" : `${number(ratio)} of the threshold`}`, event.clientX, event.clientY);
    };
    canvas.onmouseleave = () => tip("");
    canvas.onclick = (event) => {
      const [e, t] = cell(canvas, event), around = 12 * map.step;
      location.href = `${canvas.dataset.home || ""}/entity/${encodeURIComponent(canvas.dataset.name || map.entities[e])}?start=${map.times[t] - around}&stop=${map.times[t] + around}`;
    };
  }
  const axis = $("#heat-axis"), marks = innerWidth < 700 ? 3 : 6;
  axis.replaceChildren(...Array.from({ length: marks }, (_, k) => {
    const one = document.createElement("span");
    one.textContent = short(map.start + ((map.stop - map.start) * k) / (marks - 1));
    return one;
  }));
}

show();
let sizing = null;
addEventListener("resize", () => { clearTimeout(sizing); sizing = setTimeout(show, 150); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
document.addEventListener("tisat:fresh", show);
