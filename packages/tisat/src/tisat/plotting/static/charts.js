"use strict";
(function () {
  var groups = JSON.parse(document.getElementById("data").textContent);
  var all = [];
  function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); }
  var FILL = { found: "good", missed: "gone", "false": "shade", alarm: "shade", fault: "truth", "true": null };
  var EDGE = { found: "found", missed: "missed", "false": "alarm", alarm: "alarm", fault: "fault", "true": "found" };
  function number(u, value) { return value == null ? "-" : String(Number(value.toPrecision(5))); }

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

  function look(name) {
    var looks = {
      seen: { stroke: function () { return colour("ink"); }, width: 1 },
      edge: { stroke: "transparent", points: { show: false } },
      expected: { stroke: function () { return colour("curve"); }, width: 1 },
      limit: { stroke: function () { return colour("alarm"); }, width: 1, dash: [6, 4], points: { show: false } },
      baseline: { stroke: function () { return colour("baseline"); }, width: 2, dash: [3, 4] }
    };
    return looks[name] || { stroke: function () { return colour(name); }, width: 1.6 };
  }

  function axis(extra) {
    return Object.assign({
      stroke: function () { return colour("soft"); },
      grid: { stroke: function () { return colour("line"); }, width: 1 }, ticks: { stroke: function () { return colour("line"); } }
    }, extra || {});
  }

  // Stretches of alarms and faults behind the curves, with a line where an alarm began.
  function shade(u, group, one) {
    u.ctx.save();
    group.marks.forEach(function (mark) {
      if (one.of != null && mark.lane !== one.of) return;
      var a = u.valToPos(mark.start, "x", true), b = u.valToPos(mark.stop, "x", true);
      var left = Math.max(a, u.bbox.left), right = Math.min(Math.max(b, a + 2), u.bbox.left + u.bbox.width);
      if (right <= left) return;
      if (FILL[mark.kind]) {
        u.ctx.fillStyle = colour(FILL[mark.kind]);
        u.ctx.fillRect(left, u.bbox.top, right - left, u.bbox.height);
      }
      if (a >= u.bbox.left && (mark.kind === "alarm" || mark.kind === "false" || mark.kind === "true")) {
        u.ctx.fillStyle = colour(EDGE[mark.kind]);
        u.ctx.fillRect(a, u.bbox.top, 1.5 * devicePixelRatio, u.bbox.height);
      }
    });
    u.ctx.restore();
  }

  // The timeline: every mark a bar in its lane with its name above it, as many heights as it takes; what does not fit waits for a zoom.
  function timeline(u, group, one) {
    var ratio = devicePixelRatio, ctx = u.ctx, room = u.bbox.height / one.lanes.length, boxes = [];
    ctx.save();
    ctx.beginPath();
    ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    ctx.clip();
    ctx.font = 12 * ratio + "px system-ui, sans-serif";
    ctx.textBaseline = "bottom";
    ctx.textAlign = "left";
    one.lanes.forEach(function (lane, index) {
      var foot = u.bbox.top + room * (index + 1) - 5 * ratio, used = [];
      var heights = Math.max(1, Math.floor((room - 14 * ratio) / (17 * ratio)));
      group.marks.filter(function (mark) { return mark.lane === lane; }).forEach(function (mark) {
        var a = u.valToPos(mark.start, "x", true), b = Math.max(u.valToPos(mark.stop, "x", true), a + 3 * ratio);
        if (b < u.bbox.left || a > u.bbox.left + u.bbox.width) return;
        ctx.fillStyle = colour(EDGE[mark.kind]);
        ctx.fillRect(a, foot - 10 * ratio, b - a, 10 * ratio);
        boxes.push({ left: a / ratio, right: b / ratio, top: (foot - 14 * ratio) / ratio, bottom: foot / ratio, mark: mark });
        var width = ctx.measureText(mark.name).width + 8 * ratio;
        var from = Math.min(Math.max(a, u.bbox.left), u.bbox.left + u.bbox.width - width);
        for (var level = 0; level < heights; level++) {
          var clash = used.some(function (other) { return other[0] === level && other[1] < from + width && from < other[2]; });
          if (clash) continue;
          used.push([level, from, from + width]);
          ctx.fillText(mark.name, from, foot - (12 + 17 * level) * ratio);
          break;
        }
      });
      ctx.fillStyle = colour("line");
      ctx.fillRect(u.bbox.left, foot, u.bbox.width, ratio);
    });
    ctx.restore();
    one.boxes = boxes;
  }

  // Names beside the points of a scatter, where there is room.
  function names(u, one) {
    var ratio = devicePixelRatio, ctx = u.ctx, used = [];
    ctx.save();
    ctx.font = 11.5 * ratio + "px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    one.lines.forEach(function (line, index) {
      if (!line.names || !u.series[index + 1].show) return;
      line.names.forEach(function (name, i) {
        var x = u.valToPos(line.x[i], "x", true), y = u.valToPos(line.values[i], "y", true), width = ctx.measureText(name).width + 10 * ratio;
        if (x < u.bbox.left || x > u.bbox.left + u.bbox.width || y < u.bbox.top || y > u.bbox.top + u.bbox.height) return;
        var from = x + width > u.bbox.left + u.bbox.width ? x - width : x + 7 * ratio;
        if (used.some(function (other) { return other[0] < from + width && from < other[1] && Math.abs(other[2] - y) < 12 * ratio; })) return;
        used.push([from, from + width, y]);
        ctx.fillStyle = colour(line.look);
        ctx.fillText(name, from, y);
      });
    });
    ctx.restore();
  }

  function draw(group, one, host, place) {
    var own = one.lines.some(function (line) { return line.x; }), shared = own ? null : group.x;
    var data = own ? uPlot.join(one.lines.map(function (line) { return [line.x, line.values]; })) : [shared].concat(one.lines.map(function (line) { return line.values; }));
    if (one.kind === "lanes") data = [group.x, group.x.map(function () { return null; })];
    var said = group.clock ? { label: "time", value: day + " " + minute + ":{ss}" } : { label: group.axis.label || "row", value: number };
    var series = [said];
    one.lines.forEach(function (line) {
      var more = { label: line.label, value: number, spanGaps: own };
      if (one.drawn === "steps") more.paths = uPlot.paths.stepped({ align: 1 });
      if (one.drawn === "points" && line.look !== "baseline") { more.paths = function () { return null; }; more.points = { show: true, size: 8, fill: function () { return colour(line.look); } }; }
      series.push(Object.assign({}, look(line.look), more));
    });
    if (one.kind === "lanes") series.push({ label: "", show: true, stroke: "transparent", points: { show: false } });
    var x = { time: group.clock };
    if (group.axis.log) { x.distr = 3; x.time = false; }
    if (group.axis.reverse) x.dir = -1;
    if (group.axis.range) x.range = function (u, low, high) { return u.zoomed ? [low, high] : group.axis.range; };
    var y = one.steep ? { distr: 4, asinh: one.steep } : {};
    if (one.range) y.range = one.range;
    var track = group.panels.filter(function (other) { return other.kind === "lanes"; })[0];
    var letters = track ? Math.max.apply(null, track.lanes.map(function (lane) { return lane.length; })) : 0;
    var margin = Math.max(68, Math.min(24 + 7 * letters, 0.32 * host.clientWidth)), wide = { size: margin };
    if (one.kind === "lanes") {
      y.range = [0, one.lanes.length];
      wide.splits = function () { return one.lanes.map(function (lane, index) { return index + 0.25; }); };
      var most = Math.floor((margin - 20) / 7);
      wide.values = function () { return one.lanes.slice().reverse().map(function (lane) { return lane.length > most ? lane.slice(0, most - 1) + "\u2026" : lane; }); };
      wide.filter = function (u, splits) { return splits; };
      wide.grid = { show: false };
      wide.ticks = { show: false };
    } else { // a number of many digits would be cut off at the edge
      wide.values = function (u, ticks) { return ticks.map(function (t) { return Math.abs(t) >= 1e6 ? Number(t.toPrecision(3)).toExponential() : uPlot.fmtNum(t); }); };
    }
    if (one.ylabel) { wide.label = one.ylabel; wide.labelSize = 18; }
    var below = group.clock ? { values: dates } : { size: 32 };
    if (group.axis.label && !group.clock && (own || one === group.panels[group.panels.length - 1])) { below.label = group.axis.label; below.labelSize = 18; }
    if (group.axis.ticks) { below.splits = function () { return group.axis.ticks; }; below.values = function (u, splits) { return splits.map(function (value, index) { return group.axis.names ? group.axis.names[index] : String(value); }); }; below.filter = function (u, splits) { return splits; }; }
    var options = {
      width: Math.max(host.clientWidth - 12, 260), height: one.height, scales: { x: x, y: y }, axes: [axis(below), axis(wide)], series: series,
      bands: one.band ? [{ series: one.band, fill: function () { return colour("band"); } }] : [],
      legend: { show: one.kind !== "lanes" },
      cursor: { sync: own ? undefined : { key: "group" + group.number }, drag: { x: true, y: one.drawn === "points" } },
      tzDate: function (stamp) { return uPlot.tzDate(new Date(stamp * 1e3), "Etc/UTC"); }, // the clock of the data, as it was written
      hooks: {
        drawClear: [function (u) { if (one.kind !== "lanes") shade(u, group, one); }],
        draw: [function (u) { if (one.kind === "lanes") timeline(u, group, one); else if (one.drawn === "points") names(u, one); }],
        setSelect: [function (u) { u.zoomed = true; }],
        setScale: [function (u, key) { if (key === "x" && !own) together(group, u); }]
      }
    };
    var made = new uPlot(options, data, place);
    made.root.addEventListener("dblclick", function () { made.zoomed = false; });
    return made;
  }

  function together(group, from) {
    if (group.moving) return;
    group.moving = true;
    var x = from.scales.x;
    group.plots.forEach(function (other) { if (other !== from) other.setScale("x", { min: x.min, max: x.max }); });
    group.moving = false;
  }

  function begin(group, number) {
    var host = document.querySelector("[data-group='" + number + "']");
    group.number = number;
    group.plots = [];
    if (!host) return;
    var bar = document.createElement("div");
    bar.className = "switches";
    host.append(bar);
    var shown = [], several = group.panels.filter(function (one) { return one.kind !== "lanes"; }).length > 1;
    group.panels.forEach(function (one) {
      var box = document.createElement("div"), title = document.createElement("h3"), place = document.createElement("div");
      var name = document.createElement("span"), output = document.createElement("output"), button = document.createElement("button");
      box.className = "chart";
      name.textContent = one.name;
      title.append(name, output);
      box.append(title, place);
      host.append(box);
      function show(on) {
        box.hidden = !on;
        button.setAttribute("aria-pressed", String(on));
        if (on && !one.plot) {
          one.plot = draw(group, one, host, place);
          group.plots.push(one.plot);
          all.push({ plot: one.plot, host: host, height: one.height });
          if (one.kind === "lanes") point(one, output);
          var other = group.plots[0];
          if (other !== one.plot && !one.lines.some(function (line) { return line.x; })) one.plot.setScale("x", { min: other.scales.x.min, max: other.scales.x.max });
        }
      }
      button.type = "button";
      button.textContent = one.name;
      button.addEventListener("click", function () { show(box.hidden); });
      if (group.switches && several && one.kind !== "lanes") bar.append(button);
      shown.push([show, !one.hidden]);
    });
    shown.forEach(function (pair) { pair[0](pair[1]); });
    var back = document.createElement("button");
    back.type = "button";
    back.textContent = "show everything";
    back.title = "Drag over a chart to zoom in; this or a double click goes back";
    back.addEventListener("click", function () {
      group.plots.forEach(function (plot) { plot.zoomed = false; plot.setData(plot.data, true); });
    });
    bar.append(back);
  }

  // What one points at in a timeline is said in words.
  function point(one, output) {
    one.plot.over.addEventListener("mousemove", function (event) {
      var box = one.plot.over.getBoundingClientRect(), left = one.plot.bbox.left / devicePixelRatio, top = one.plot.bbox.top / devicePixelRatio;
      var x = event.clientX - box.left + left, y = event.clientY - box.top + top;
      var hit = (one.boxes || []).filter(function (found) { return x >= found.left - 3 && x <= found.right + 3 && y >= found.top - 14 && y <= found.bottom; })[0];
      output.textContent = hit ? hit.mark.said || hit.mark.name : "";
    });
  }

  groups.forEach(begin);
  document.querySelectorAll("button[data-from]").forEach(function (button) {
    button.addEventListener("click", function () {
      var group = groups[Number(button.dataset.of || 0)], x = group.x;
      group.plots[0].setScale("x", { min: Math.max(x[0], Number(button.dataset.from)), max: Math.min(x[x.length - 1], Number(button.dataset.to)) });
      document.querySelector("[data-group='" + group.number + "']").scrollIntoView({ behavior: "smooth" });
    });
  });
  function fit(width) { all.forEach(function (one) { if (one.host.clientWidth || width) one.plot.setSize({ width: width || Math.max(one.host.clientWidth - 12, 260), height: one.height }); }); }
  window.addEventListener("resize", function () { fit(0); });
  function redraw() { all.forEach(function (one) { one.plot.redraw(false, true); }); }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  window.addEventListener("beforeprint", function () { document.documentElement.setAttribute("data-printed", ""); fit(680); redraw(); });
  window.addEventListener("afterprint", function () { document.documentElement.removeAttribute("data-printed"); fit(0); redraw(); });
  document.querySelectorAll("details").forEach(function (one) { one.addEventListener("toggle", function () { fit(0); }); });
})();
