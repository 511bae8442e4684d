// The page around the timeline.

const given = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);

function added(parent, tag, text, attributes = {}) {
  const child = document.createElement(tag);
  if (text !== undefined) child.textContent = text;
  for (const [name, value] of Object.entries(attributes)) child.setAttribute(name, value);
  parent.append(child);
  return child;
}

const view = new TimelineView(element("canvas"), element("tip"));
const timelines = [];
const timelineAt = (i) => timelines[i] || (timelines[i] = decoded(given.timelines[i]));

function fillAnswer() { for (const sentence of given.sentences) added(element("answer"), "p", sentence); }

function fillLegend(timeline) {
  const legend = element("legend");
  legend.replaceChildren();
  const names = {D: "D: gradient of inputs", W: "W: gradient of weights", F: "F: forward", B: "B: backward",
                 R: "R: recomputation", send: "send: the link is held", recv: "recv: until it has arrived",
                 prefill: "prefill", collective: "collective", task: "task of a host or copy",
                 optimize: "optimizer's step"};
  const used = new Set();
  for (const kind of timeline.kind) used.add(styleName(timeline.kinds[kind]));
  for (const name of Object.keys(STYLES)) {
    if (!used.has(name)) continue;
    const item = added(legend, "li");
    const patch = added(item, "canvas", undefined, {width: 28, height: 14, "aria-hidden": "true"});
    const pen = patch.getContext("2d");
    pen.fillStyle = fillOf(pen, name);
    pen.fillRect(0, 0, 28, 14);
    item.append(names[name] || name);
  }
}

// Share of devices that compute, and the memory of the device that holds most, over time.
function drawUse(timeline) {
  const canvas = element("use"), scale = window.devicePixelRatio || 1;
  canvas.style.height = "150px";
  canvas.width = Math.round(canvas.clientWidth * scale);
  canvas.height = Math.round(150 * scale);
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  const left = GUTTER, width = Math.max(50, canvas.clientWidth - GUTTER - 8), tall = 56, bins = 300;
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const lanes = timeline.lanes.map((lane, i) => [lane, i]).filter(([lane]) => lane.blocks);
  const largest = Math.max(1, ...timeline.sides.flatMap((side) => side.memory.flatMap((each) => Array.from(each))));
  const summary = [];
  timeline.sides.forEach((side, which) => {
    const busy = new Float64Array(bins), step = timeline.span / bins;
    let sum = 0;
    for (const [, index] of lanes) {
      for (const row of side.byLane[index]) {
        const begin = side.start[row], end = begin + side.length[row];
        sum += side.length[row];
        for (let bin = Math.floor(begin / step); bin < bins && bin * step < end; ++bin)
          busy[bin] += Math.min(end, (bin + 1) * step) - Math.max(begin, bin * step);
      }
    }
    const dash = side.name === "predicted" ? [4, 3] : [];
    pen.setLineDash(dash);
    pen.strokeStyle = view.colour("--accent");
    pen.beginPath();
    busy.forEach((value, bin) => {
      const y = 8 + tall - tall * value / (step * lanes.length);
      if (bin === 0) pen.moveTo(left, y); else pen.lineTo(left + width * bin / bins, y);
    });
    pen.stroke();
    let most = 0;
    const peaks = side.memory.map((each) => each.reduce((a, b) => Math.max(a, b), 0));
    peaks.forEach((peak, device) => { if (peak > peaks[most]) most = device; });
    const memory = side.memory[most] || [];
    pen.strokeStyle = view.colour("--path");
    pen.beginPath();
    memory.forEach((value, bin) => {
      const x = left + width * (bin / memory.length) * side.span / timeline.span;
      const y = 82 + tall - tall * value / largest;
      if (bin === 0) pen.moveTo(x, y); else pen.lineTo(x, y);
    });
    pen.stroke();
    summary.push(`${side.name}: devices compute ${(100 * sum / (side.span * lanes.length)).toFixed(1)}% of the ` +
                 `iteration; at most ${bytesText(Math.max(0, ...peaks))} of activations on one ` +
                 `(rank ${most})`);
    if (which === 0) {
      pen.setLineDash([]);
      pen.fillStyle = view.colour("--ink");
      pen.fillText("devices that compute", 6, 8 + tall / 2, GUTTER - 12);
      pen.fillText("activations, largest", 6, 82 + tall / 2, GUTTER - 12);
      pen.strokeStyle = view.colour("--line");
      pen.strokeRect(left, 8, width, tall);
      pen.strokeRect(left, 82, width, tall);
    }
  });
  pen.setLineDash([]);
  element("use-text").textContent = `${summary.join(". ")}. Dashed: predicted.`;
}

const dollarText = (value) => `$${value.toPrecision(4)}`;
const hasPlans = (key) => given.advice.plans.some((plan) => plan[key] !== null);
const columns = given.training ? curveColumns : given.advice ? [
  ["plan", (row) => row.plan],
  ...(hasPlans("gpus") ? [["GPUs", (row) => row.gpus]] : []),
  ["schedule", (row) => row.made_by, true], ["overlap", (row) => row.overlap, true],
  ["ideas", (row) => row.ideas, true], ["iteration", (row) => row.iteration_ns, false, timeText],
  ...(hasPlans("loss_ns") ? [["to the loss", (row) => row.loss_ns, false, timeText]] : []),
  ...(hasPlans("net_dollars") ? [["net", (row) => row.net_dollars, false, dollarText]] : []),
  ["gap", (row) => row.gap, false, percentText],
  ["tokens/s", (row) => row.tokens_per_second, false, (value) => value.toFixed(0)],
  ["$ per M tokens", (row) => row.dollars_per_million_tokens, false, (value) => value.toFixed(4)],
  ["memory", (row) => row.memory_bytes, false, bytesText],
] : [
  ["run", (row) => row.run, true], ["schedule", (row) => row.schedule, true], ["n", (row) => row.n],
  ["measured", (row) => row.measured_median_ns, false, timeText], ["predicted", (row) => row.predicted_ns, false, timeText],
  ["difference", (row) => row.difference_percent, false, (value) => `${value >= 0 ? "+" : ""}${value.toFixed(2)}%`],
  ["bubbles", (row) => row.bubble_ratio, false, percentText],
  ["over the fastest", (row) => row.over_fastest, false, (value) => `${value.toFixed(3)}x`],
];
const tableRows = given.training ? given.training.curves : given.advice ? given.advice.plans : given.schedules;
// Plans are numbered best first; curves are sorted by the time to the target.
let order = {column: given.training ? 5 : given.advice ? 0 : 7, down: false};

function fillTable() {
  const table = element("table");
  table.replaceChildren();
  const head = added(added(table, "thead"), "tr");
  columns.forEach(([name, , text], i) => {
    const cell = added(head, "th", undefined, {scope: "col", class: text ? "text" : ""});
    if (order.column === i) cell.setAttribute("aria-sort", order.down ? "descending" : "ascending");
    const mark = order.column === i ? (order.down ? " \u25be" : " \u25b4") : "";
    added(cell, "button", name + mark, {type: "button"}).addEventListener("click", () => {
      order = {column: i, down: order.column === i && !order.down};
      fillTable();
      table.querySelectorAll("th button")[i].focus();
    });
  });
  const value = columns[order.column][1];
  const rows = tableRows.map((row, i) => ({...row, i})).sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === null || y === null) return (x === null) - (y === null) || a.i - b.i;
    const sign = x < y ? -1 : x > y ? 1 : 0;
    return (order.down ? -sign : sign) || a.i - b.i;
  });
  const body = added(table, "tbody");
  for (const row of rows) {
    const shown = given.timelines.length > 0 && !given.advice && row.timeline === Number(element("which").value);
    const line = added(body, "tr", undefined, shown ? {class: "shown"} : {});
    for (const [, get, text, format] of columns) {
      const each = get(row);
      added(line, "td", each === null ? "-" : format ? format(each) : each, text ? {class: "text"} : {});
    }
  }
}

function drawn(parent, tag, attributes, text) {
  const child = document.createElementNS("http" + "://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) child.setAttribute(name, value);
  if (text !== undefined) child.textContent = text;
  parent.append(child);
  return child;
}

// What plans are compared by: a time, or dollars.
function scoreText(score) {
  return given.advice.unit === "ns" ? timeText(score) : dollarText(score * 1e-9);
}

// From the best plan without any idea down to the best plan, idea by idea in the order they were added.
function fillWaterfall(advice) {
  const bars = [{name: "without any idea", from: 0, to: advice.baseline, kind: "whole"}];
  let score = advice.baseline;
  for (const each of advice.waterfall) {
    const kind = each.added < 0 ? "loss" : "gain";
    bars.push({name: each.idea, from: score - each.added, to: score, kind, change: -each.added});
    score -= each.added;
  }
  bars.push({name: "the best plan", from: 0, to: score, kind: "whole"});
  if (advice.bound !== null) bars.push({name: "bound of that plan", from: 0, to: advice.bound, kind: "bound"});
  const left = 180, width = 900, tall = 28, right = 150;
  const ends = bars.flatMap((bar) => [bar.from, bar.to]), largest = Math.max(...ends), least = Math.min(...ends, 0);
  const x = (at) => left + (width - left - right) * (at - least) / (largest - least);
  const svg = drawn(element("waterfall"), "svg", {viewBox: `0 0 ${width} ${bars.length * tall + 4}`, role: "img",
    "aria-label": `From ${scoreText(advice.baseline)} to ${scoreText(score)}; the table below has the numbers`});
  bars.forEach((bar, i) => {
    const y = i * tall + 4, [from, to] = [Math.min(bar.from, bar.to), Math.max(bar.from, bar.to)];
    drawn(svg, "text", {x: left - 8, y: y + 15, "text-anchor": "end"}, bar.name);
    drawn(svg, "rect", {x: x(from), y, width: Math.max(1, x(to) - x(from)), height: tall - 8, class: bar.kind});
    const label = bar.change === undefined ? scoreText(bar.to) : `${bar.change > 0 ? "+" : ""}${scoreText(bar.change)}`;
    drawn(svg, "text", {x: x(to) + 6, y: y + 15}, label);
    if (i + 1 < bars.length && bar.kind !== "bound" && bars[i + 1].kind !== "bound") {
      const edge = bar.change === undefined ? bar.to : bar.from;
      drawn(svg, "line", {x1: x(edge), x2: x(edge), y1: y + tall - 8, y2: y + tall, class: "step"});
    }
  });
}

function fillAdvice() {
  const advice = given.advice;
  if (!advice) return;
  element("advice").hidden = false;
  element("table-title").textContent = "Plans";
  document.querySelector("#which").parentElement.hidden = true;
  const hasBaseline = advice.baseline !== null;
  element("advice-text").textContent = (advice.placed ? `Placed: ${advice.placed}. ` : "") + (hasBaseline ?
    "Alone: over the best plan without any idea; added: over those before it; lost without: taken out of the whole." :
    "No plan without ideas fits: there is nothing to hold them against.");
  if (hasBaseline) {
    fillWaterfall(advice);
    const table = element("ideas"), head = added(added(table, "thead"), "tr");
    for (const name of ["idea", "alone", "added", "lost without"]) added(head, "th", name, {scope: "col"});
    const body = added(table, "tbody");
    for (const each of advice.waterfall) {
      const line = added(body, "tr");
      added(line, "td", each.idea);
      for (const key of ["alone", "added", "removed"])
        added(line, "td", `${scoreText(each[key])} (${percentText(each[key] / advice.baseline)})`);
    }
  }
  for (const each of advice.not_used) added(element("not-used"), "li", `Not used: ${each.idea} (${each.reason}).`);
}

function fillRuns() {
  for (const run of given.runs) {
    const box = element("runs");
    added(box, "h2", `Where ${run.name} comes from`);
    added(box, "p", `${run.creator} (${run.git_commit}), times as played` +
          (run.time_scale === 1 ? "" : ` at time_scale ${run.time_scale}`));
    added(box, "p", "Again:", {class: "hint"});
    added(box, "pre", run.command_line);
    for (const [title, text] of [["Scenario", run.scenario], ["Environment", JSON.stringify(run.environment, null, 2)]]) {
      const details = added(box, "details");
      added(details, "summary", title);
      added(details, "pre", text);
    }
  }
  added(element("runs"), "p", given.left_out, {class: "hint"});
  added(element("runs"), "p", `This page: ${given.made_by}`, {class: "hint"});
}

function showTimeline() {
  const which = element("which");
  if (given.timelines.length === 0) return;
  const timeline = timelineAt(Number(which.value));
  view.show(timeline);
  fillLegend(timeline);
  drawUse(timeline);
  fillTable();
  find();
}

let matches = [], match = -1;
function find(step = 0) {
  const text = element("find").value.trim().toLowerCase();
  const timeline = view.timeline;
  if (step === 0) {
    matches = [];
    match = -1;
    const rank = /^rank\s*(\d+)$/.exec(text), op = /^op\s*(\d+)$/.exec(text);
    for (let row = 0; text && row < timeline.count; ++row) {
      const is = rank ? timeline.lanes[timeline.lane[row]].rank === Number(rank[1]) :
        op ? opOf(timeline, row) === Number(op[1]) : labelOf(timeline, row).toLowerCase() === text ||
          timeline.kinds[timeline.kind[row]].toLowerCase() === text;
      if (is) matches.push(row);
    }
    view.matches = new Set(matches);
    view.redraw();
  } else if (matches.length > 0) {
    match = (match + step + matches.length) % matches.length;
    const side = view.timeline.sides.find((each) => each.ran[matches[match]]);
    if (side) view.pick({side, row: matches[match]}, true);
  }
  element("found").textContent = !text ? "" : match < 0 ? `${matches.length} found` : `${match + 1} of ${matches.length}`;
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  element("theme").textContent = name === "dark" ? "Light" : "Dark";
  view.colours.clear();
  view.redraw();
  if (view.timeline) drawUse(view.timeline);
}

function start() {
  fillAnswer();
  fillAdvice();
  fillTraining(given.training);
  given.timelines.forEach((timeline, i) => added(element("which"), "option", timeline.title, {value: i}));
  fillRuns();
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  element("theme").addEventListener("click", () =>
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  let onScreen = "light";
  addEventListener("beforeprint", () => {  // paper is light
    onScreen = document.documentElement.dataset.theme;
    setTheme("light");
    view.draw();
  });
  addEventListener("afterprint", () => setTheme(onScreen));
  element("which").addEventListener("change", showTimeline);
  element("lanes").addEventListener("change", (event) => {
    view.shown = event.target.value;
    view.layOut();
    view.redraw();
  });
  element("path").addEventListener("change", (event) => { view.showPath = event.target.checked; view.redraw(); });
  element("zoom-in").addEventListener("click", () => view.zoom(0.5));
  element("zoom-out").addEventListener("click", () => view.zoom(2));
  element("zoom-all").addEventListener("click", () => view.all());
  element("find").addEventListener("input", () => find());
  element("find").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    find(event.shiftKey ? -1 : 1);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.tagName === "INPUT") return;
    event.preventDefault();
    element("find").focus();
  });
  window.addEventListener("resize", () => view.timeline && drawUse(view.timeline));
  if (given.timelines.length === 0) {
    element("chart").hidden = element("use-part").hidden = true;
    fillTable();
    return;
  }
  showTimeline();
}
start();
