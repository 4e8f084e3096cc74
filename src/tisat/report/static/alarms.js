"use strict";
(function () {
  var page = JSON.parse(document.getElementById("data").textContent);
  var host = document.getElementById("charts");
  var charts = [];
  var moving = false;
  function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

  // Spans of alarms and, where there are labels, of known faults, behind the curves.
  function shade(u) {
    function span(from, to, fill, edge) {
      var a = u.valToPos(from, "x", true), b = u.valToPos(to, "x", true);
      var left = Math.max(a, u.bbox.left), right = Math.min(Math.max(b, a + 2), u.bbox.left + u.bbox.width);
      if (right <= left) return;
      u.ctx.fillStyle = fill;
      u.ctx.fillRect(left, u.bbox.top, right - left, u.bbox.height);
      if (edge && a >= u.bbox.left) { u.ctx.fillStyle = edge; u.ctx.fillRect(a, u.bbox.top, 2, u.bbox.height); }
    }
    u.ctx.save();
    page.faults.forEach(function (one) { span(one[0], one[1], colour("--truth"), null); });
    page.alarms.forEach(function (one) { span(one[0], one[1], colour("--shade"), colour("--alarm")); });
    u.ctx.restore();
  }

  function together(from) {
    if (moving) return;
    moving = true;
    var x = from.scales.x;
    charts.forEach(function (other) { if (other !== from) other.setScale("x", { min: x.min, max: x.max }); });
    moving = false;
  }

  function show(from, to) { charts[0].setScale("x", { min: from, max: to }); }

  function number(u, value) { return value == null ? "-" : String(Number(value.toPrecision(5))); }

  function axis(extra) {
    return Object.assign({ stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } }, extra || {});
  }

  // A 24-hour clock and dates from the year down: they read the same everywhere.
  var day = "{YYYY}-{MM}-{DD}", minute = "{HH}:{mm}";
  var dates = [
    [31536000, "{YYYY}", null, null, null, null, null, null, 1],
    [2419200, "{YYYY}-{MM}", null, null, null, null, null, null, 1],
    [86400, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1],
    [60, minute, "\n" + day, null, "\n{MM}-{DD}", null, null, null, 1],
    [1, minute + ":{ss}", "\n" + day, null, "\n{MM}-{DD}", null, null, null, 1],
    [0.001, minute + ":{ss}.{fff}", "\n" + day, null, "\n{MM}-{DD}", null, null, null, 1]
  ];

  function chart(one) {
    var box = document.createElement("div"), title = document.createElement("h3"), place = document.createElement("div");
    box.className = "chart";
    title.textContent = one.name;
    box.append(title, place);
    host.append(box);
    var series = [page.clock ? { label: "time", value: day + " " + minute + ":{ss}" } : { label: "instant" }], bands = [];
    one.lines.forEach(function (line) {
      var looks = { seen: { stroke: colour("--ink"), width: 1 }, edge: { stroke: "transparent", points: { show: false } },
        expected: { stroke: colour("--curve"), width: 1 }, limit: { stroke: colour("--alarm"), width: 1, dash: [6, 4], points: { show: false } } };
      series.push(Object.assign({ label: line.label, value: number, spanGaps: false }, looks[line.look]));
    });
    if (one.band) bands.push({ series: one.band, fill: colour("--band") });
    var options = {
      width: Math.max(host.clientWidth - 12, 280), height: one.height,
      scales: { x: { time: page.clock }, y: one.log ? { distr: 4, asinh: one.log } : {} },
      axes: [axis(page.clock ? { values: dates } : {}), axis({ size: 68 })], series: series, bands: bands,
      cursor: { sync: { key: "tisat" }, drag: { x: true, y: false } },
      tzDate: function (stamp) { return uPlot.tzDate(new Date(stamp * 1e3), "Etc/UTC"); }, // the clock of the data, as it was written
      hooks: { drawClear: [shade], setScale: [function (u, key) { if (key === "x") together(u); }] }
    };
    charts.push(new uPlot(options, [page.x].concat(one.lines.map(function (line) { return line.values; })), place));
  }

  page.charts.forEach(chart);
  var first = page.x[0], last = page.x[page.x.length - 1];
  document.querySelectorAll("button[data-from]").forEach(function (button) {
    button.addEventListener("click", function () {
      show(Math.max(first, Number(button.dataset.from)), Math.min(last, Number(button.dataset.to)));
      document.getElementById("charts").scrollIntoView({ behavior: "smooth" });
    });
  });
  document.getElementById("all").addEventListener("click", function () { show(first, last); });
  window.addEventListener("resize", function () {
    charts.forEach(function (one) { one.setSize({ width: Math.max(host.clientWidth - 12, 280), height: one.height }); });
  });
})();
