// The charts of an entity: the statistic against its threshold, then the channels, the contributing ones first.
import { $, ask, colour, data, local, number, short } from "/static/common.js";

const box = $("#charts"), fixed = "fixed" in box.dataset;
let charts = [], history = data("history-data");
const whole = history;

function bands(plot) {
  const pen = plot.ctx, { left, top, width, height } = plot.bbox;
  pen.save();
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.clip();
  for (const pause of history.pauses) {
    pen.fillStyle = colour("--mark");
    const a = plot.valToPos(pause.start, "x", true), b = plot.valToPos(pause.stop, "x", true);
    pen.fillRect(a, top, b - a, height);
  }
  for (const alarm of history.alarms) {
    const a = plot.valToPos(alarm.onset, "x", true), b = plot.valToPos(alarm.cleared ?? history.stop, "x", true);
    pen.fillStyle = colour("--shade");
    pen.fillRect(a, top, Math.max(b - a, 2), height);
    const raised = plot.valToPos(alarm.raised, "x", true);
    pen.strokeStyle = colour("--alarm");
    pen.setLineDash([4, 3]);
    pen.beginPath();
    pen.moveTo(raised, top);
    pen.lineTo(raised, top + height);
    pen.stroke();
  }
  pen.restore();
}

function zoomed(plot) {
  if (plot.select.width < 4) return;
  const start = plot.posToVal(plot.select.left, "x"), stop = plot.posToVal(plot.select.left + plot.select.width, "x");
  plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  look(start, stop);
}

async function look(start, stop) {
  const name = encodeURIComponent(box.dataset.entity);
  history = await ask(`/api/v1/entities/${name}/history?start=${start}&stop=${stop}&points=400&channels=${box.dataset.channels}`);
  if (!fixed) window.history.replaceState(null, "", `?start=${start}&stop=${stop}&channels=${box.dataset.channels}`);
  show();
}

function chart(title, note, columns, series, options = {}) {
  const holder = box.appendChild(document.createElement("div"));
  holder.className = "chart";
  const heading = holder.appendChild(document.createElement("h3"));
  heading.textContent = title;
  if (note) { const small = heading.appendChild(document.createElement("small")); small.textContent = ` ${note}`; }
  const readout = heading.appendChild(document.createElement("output"));
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: "12px system-ui, sans-serif" };
  const plot = new uPlot({
    width: box.clientWidth, height: options.height || 150, cursor: { sync: { key: "tisat" }, drag: { x: true, y: false } },
    scales: { x: { time: true, min: history.start, max: history.stop }, y: options.scale || {} }, legend: { show: false },
    axes: [{ ...axis, space: 90, values: (_, ticks) => ticks.map(history.stop - history.start > 129600 ? short : (t) => local(t, history.stop - history.start < 1200 ? null : false)) }, { ...axis, size: 64, values: (_, ticks) => ticks.map(number) }],
    bands: options.bands || [], hooks: { drawClear: [bands], setSelect: [zoomed], setCursor: [(one) => { readout.textContent = one.cursor.idx === null ? "" : options.read(one.cursor.idx); }] },
    series: [{ label: "time", value: (_, t) => (t === null ? "" : local(t)) }, ...series],
  }, [history.times, ...columns], holder);
  plot.over.addEventListener("dblclick", () => { history = whole; show(); });
  charts.push(plot);
}

function line(name, tint, more = {}) {
  return { label: name, stroke: tint, width: 1.5, points: { show: false }, spanGaps: false, value: (_, v) => number(v), ...more };
}

function show() {
  for (const one of charts) one.destroy();
  charts = [];
  box.replaceChildren();
  if (!history.times.length) { box.textContent = "No rows in this time."; return; }
  const threshold = history.times.map((_, k) => (history.ratio[k] === null ? null : 1));
  chart("How unusual", "at 1 the alarm begins: statistic / threshold", [history.ratio, threshold],
    [line("ratio", colour("--curve"), { fill: colour("--band") }), line("threshold", colour("--alarm"), { dash: [6, 4], width: 1.5 })],
    { height: 120, read: (k) => `${local(history.times[k])}: ${number(history.ratio[k])} × the threshold`, scale: { range: (_, low, high) => [0, Math.max(1.25, 1.05 * (high || 1))] } });
  for (const one of history.channels) {
    const upper = one.expected.map((e, k) => (e === null || one.spread[k] === null ? null : e + one.spread[k]));
    const lower = one.expected.map((e, k) => (e === null || one.spread[k] === null ? null : e - one.spread[k]));
    const note = one.attribution >= 0.005 ? `${Math.round(100 * one.attribution)} % of the evidence in these alarms` : "";
    chart(one.name, note, [upper, lower, one.expected, one.high, one.low, one.values], [
      line("expected +", "transparent", { width: 0 }), line("expected −", "transparent", { width: 0 }), line("expected", colour("--soft"), { dash: [4, 3], width: 1 }),
      line("largest", colour("--curve"), { width: 0.4 }), line("least", colour("--curve"), { width: 0.4 }), line("value", colour("--curve")),
    ], {
      bands: [{ series: [1, 2], fill: colour("--band") }],
      read: (k) => `${local(history.times[k])}: ${number(one.values[k])}` + (one.expected[k] === null ? "" : `, expected ${number(one.expected[k])} ± ${number(one.spread[k])}`),
    });
  }
}

show();
let sizing = null;
addEventListener("resize", () => { clearTimeout(sizing); sizing = setTimeout(show, 200); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
