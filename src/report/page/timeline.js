// The timeline: predicted above measured, one row of pixels a lane.

const GUTTER = 168, RULER = 22, HEAD = 20, GAP = 14;
const BLOCK = 20, MESSAGE = 9;

// Told apart by pattern, or by luminance in steps of 20 or more: in grey, too.
const STYLES = {
  F: ["#f2d54a"], B: ["#4a7db0"], D: ["#7fb2e5"], W: ["#2b5c8a"], R: ["#c9c2a0", "/"], optimize: ["#16324d", "\\"],
  send: ["#d08418"], recv: ["#e9c48e", "\\"], prefill: ["#1f8a70", "x"], collective: ["#8e4585", "\\"], task: ["#9aa3ad", "."],
};
const COLLECTIVES = new Set(["all_gather", "reduce_scatter", "all_reduce", "broadcast", "reduce", "gather", "scatter",
                             "all_to_all"]);
function styleName(kind) {
  if (STYLES[kind]) return kind;
  return COLLECTIVES.has(kind) ? "collective" : "task";
}

const fills = new Map();
function fillOf(context, name) {
  if (fills.has(name)) return fills.get(name);
  const [colour, mark] = STYLES[name];
  let fill = colour;
  if (mark) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const pen = tile.getContext("2d");
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 8, 8);
    pen.strokeStyle = "rgba(0,0,0,.55)";
    pen.beginPath();
    for (const step of [-8, 0, 8]) {
      if (mark === "/" || mark === "x") { pen.moveTo(step, 8); pen.lineTo(step + 8, 0); }
      if (mark === "\\" || mark === "x") { pen.moveTo(step, 0); pen.lineTo(step + 8, 8); }
    }
    if (mark === ".") pen.rect(3, 3, 1, 1);
    pen.stroke();
    fill = context.createPattern(tile, "repeat");
  }
  fills.set(name, fill);
  return fill;
}

class TimelineView {
  constructor(canvas, tip) {
    this.canvas = canvas;
    this.tip = tip;
    this.shown = "wan";
    this.showPath = false;
    this.matches = new Set();
    this.picked = null;  // {side, row}
    this.frame = 0;
    this.drawn = 0;      // frames, for tests
    this.width = 50;
    this.colours = new Map();
    canvas.addEventListener("wheel", (event) => this.wheel(event), {passive: false});
    canvas.addEventListener("pointerdown", (event) => this.grab(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", () => { this.grabbed = null; });
    canvas.addEventListener("pointerleave", () => { this.grabbed = null; });
    canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.redraw()).observe(canvas);
  }

  show(timeline) {
    this.timeline = timeline;
    this.picked = null;
    this.matches = new Set();
    this.layOut();
    this.all();
  }

  layOut() {
    const wanted = (lane) => lane.blocks || this.shown === "all" || (this.shown === "wan" && lane.wan);
    this.rows = this.timeline.lanes.map((lane, index) => ({lane, index})).filter(({lane}) => wanted(lane));
    this.panels = [];
    let y = RULER;
    for (const side of this.timeline.sides) {
      const panel = {side, top: y, lanes: []};
      y += HEAD;
      for (const {lane, index} of this.rows) {
        const height = lane.blocks ? BLOCK : MESSAGE;
        panel.lanes.push({lane, index, y, height});
        y += height + (lane.last ? 3 : 1);
      }
      panel.bottom = y;
      this.panels.push(panel);
      y += GAP;
    }
    this.canvas.style.height = `${Math.max(y, 120)}px`;
  }

  all() { this.from = 0; this.to = this.timeline.span; this.redraw(); }

  x(time) { return GUTTER + (time - this.from) / (this.to - this.from) * this.width; }
  time(x) { return this.from + (x - GUTTER) / this.width * (this.to - this.from); }

  zoom(factor, around = (this.from + this.to) / 2) {
    const span = Math.min(this.timeline.span * 1.02, Math.max(20, (this.to - this.from) * factor));
    const share = (around - this.from) / (this.to - this.from);
    this.from = around - share * span;
    this.to = this.from + span;
    this.keepInside();
  }

  pan(share) {
    const step = share * (this.to - this.from);
    this.from += step;
    this.to += step;
    this.keepInside();
  }

  keepInside() {
    const span = this.to - this.from;
    this.from = Math.max(Math.min(this.from, this.timeline.span - span * 0.1), -span * 0.1);
    this.to = this.from + span;
    this.redraw();
  }

  redraw() {
    if (!this.timeline || this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  colour(name) {
    if (!this.colours.has(name))
      this.colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
    return this.colours.get(name);
  }

  draw() {
    const scale = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    this.width = Math.max(50, width - GUTTER - 8);
    this.colours = new Map();
    if (this.canvas.width !== Math.round(width * scale)) this.canvas.width = Math.round(width * scale);
    if (this.canvas.height !== Math.round(height * scale)) this.canvas.height = Math.round(height * scale);
    const pen = this.canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.fillStyle = this.colour("--paper");
    pen.fillRect(0, 0, width, height);
    this.drawRuler(pen, width, height);
    for (const panel of this.panels) this.drawPanel(pen, panel);
    if (this.showPath) for (const panel of this.panels) this.drawPath(pen, panel);
    this.drawPicked(pen);
    ++this.drawn;
  }

  drawRuler(pen, width, height) {
    const unit = this.timeline.unit_ns, span = (this.to - this.from) * unit;
    const rough = span / 8, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.textAlign = "center";
    pen.strokeStyle = this.colour("--line");
    pen.fillStyle = this.colour("--soft");
    for (let at = Math.ceil(this.from * unit / step) * step; at <= this.to * unit; at += step) {
      const x = this.x(at / unit);
      if (x < GUTTER) continue;
      pen.beginPath();
      pen.moveTo(x, RULER - 4);
      pen.lineTo(x, height);
      pen.stroke();
      pen.fillText(timeText(Math.round(at)), x, RULER / 2);
    }
  }

  drawPanel(pen, panel) {
    pen.textAlign = "left";
    pen.fillStyle = this.colour("--ink");
    pen.font = "600 13px system-ui, sans-serif";
    pen.fillText(`${panel.side.name}: ${timeText(panel.side.span * this.timeline.unit_ns)}`, 6, panel.top + HEAD / 2);
    for (const lane of panel.lanes) this.drawLane(pen, panel.side, lane);
  }

  drawLane(pen, side, {lane, index, y, height}) {
    pen.fillStyle = this.colour("--band");
    pen.fillRect(GUTTER, y, this.width, height);
    pen.font = lane.blocks ? "12px system-ui, sans-serif" : "9px system-ui, sans-serif";
    pen.fillStyle = this.colour(lane.blocks ? "--ink" : "--soft");
    pen.textAlign = "left";
    const name = lane.blocks ? `rank ${lane.rank} ${lane.datacenter}` : lane.name;
    pen.fillText(name, lane.blocks ? 6 : 26, y + height / 2, GUTTER - 30);
    pen.save();
    pen.beginPath();
    pen.rect(GUTTER, y, this.width, height);
    pen.clip();
    const rows = side.byLane[index], {start, length} = side, {styles, styleNames} = this.timeline;
    const scale = this.width / (this.to - this.from), shift = GUTTER - this.from * scale;
    const searches = this.matches.size > 0, texts = [];
    // Ops too thin to see that follow each other are drawn as one.
    const run = {left: 0, right: -1, style: -1};
    const drawRun = () => {
      if (run.style < 0) return;
      const left = Math.round(run.left), wide = Math.max(1, Math.round(run.right) - left);
      pen.fillStyle = wide < 3 ? STYLES[styleNames[run.style]][0] : fillOf(pen, styleNames[run.style]);
      pen.fillRect(left, y, wide, height);
      run.style = -1;
    };
    for (let i = this.firstVisible(side, rows); i < rows.length; ++i) {
      const row = rows[i];
      if (start[row] > this.to) break;
      const left = start[row] * scale + shift, wide = length[row] * scale;
      const thin = wide < 1 && !searches;
      if (thin && run.style === styles[row] && left <= run.right + 1) {
        run.right = left + 1;
      } else {
        drawRun();
        if (searches) pen.globalAlpha = this.matches.has(row) ? 1 : 0.25;
        run.left = left;
        run.right = left + wide - (wide > 4 ? 1 : 0);
        run.style = styles[row];
        if (!thin) drawRun();
        if (lane.blocks && wide > 22) texts.push([row, left, left + wide]);
      }
      // What begins in the same pixel would be drawn over it.
      if (thin) i = this.firstFrom(start, rows, i + 1, (Math.floor(left) + 1 - shift) / scale) - 1;
    }
    drawRun();
    pen.globalAlpha = 1;
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "center";
    for (const [row, left, right] of texts) {
      const dark = ["W", "B", "optimize"].includes(styleNames[styles[row]]);
      const dimmed = this.matches.size > 0 && !this.matches.has(row);
      pen.fillStyle = dimmed ? this.colour("--ink") : dark ? "#ffffff" : "#14171a";
      pen.fillText(labelOf(this.timeline, row), (Math.max(left, GUTTER) + Math.min(right, GUTTER + this.width)) / 2,
                   y + height / 2, right - left - 4);
    }
    pen.restore();
  }

  firstVisible(side, rows) {
    let low = 0, high = rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (side.start[rows[middle]] + side.length[rows[middle]] < this.from) low = middle + 1; else high = middle;
    }
    return low;
  }

  // The first of `rows`, from place `low` on, that starts at `time` or later.
  firstFrom(start, rows, low, time) {
    let high = rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (start[rows[middle]] < time) low = middle + 1; else high = middle;
    }
    return low;
  }

  laneAt(panel, row) { return panel.lanes.find((lane) => lane.index === this.timeline.lane[row]); }

  drawPath(pen, panel) {
    pen.strokeStyle = this.colour("--path");
    pen.lineWidth = 2;
    let before = null;
    for (const row of panel.side.path) {
      const lane = this.laneAt(panel, row);
      if (!lane) continue;
      const left = this.x(panel.side.start[row]), right = this.x(panel.side.start[row] + panel.side.length[row]);
      const visible = right >= GUTTER && left <= GUTTER + this.width;
      if (before && visible && before.lane !== lane) {
        pen.beginPath();
        pen.moveTo(Math.max(GUTTER, before.right), before.lane.y + before.lane.height / 2);
        pen.lineTo(Math.max(GUTTER, left), lane.y + lane.height / 2);
        pen.stroke();
      }
      if (visible)
        pen.strokeRect(Math.max(GUTTER, left) + 1, lane.y + 1, Math.max(1, Math.min(right, GUTTER + this.width) -
                       Math.max(GUTTER, left) - 2), lane.height - 2);
      before = {lane, right};
    }
    pen.lineWidth = 1;
  }

  drawPicked(pen) {
    if (!this.picked) return;
    for (const panel of this.panels) {
      const lane = this.laneAt(panel, this.picked.row);
      if (!lane || !panel.side.ran[this.picked.row]) continue;
      const left = Math.max(GUTTER, this.x(panel.side.start[this.picked.row]));
      const right = this.x(panel.side.start[this.picked.row] + panel.side.length[this.picked.row]);
      if (right < GUTTER) continue;
      pen.strokeStyle = this.colour("--here");
      pen.lineWidth = panel.side === this.picked.side ? 3 : 1.5;
      pen.strokeRect(left, lane.y, Math.max(2, right - left), lane.height);
    }
    pen.lineWidth = 1;
  }

  at(x, y) {
    for (const panel of this.panels) {
      const lane = panel.lanes.find((each) => y >= each.y && y <= each.y + each.height);
      if (!lane) continue;
      const rows = panel.side.byLane[lane.index], time = this.time(x);
      const slack = 3 / this.width * (this.to - this.from);
      let best = null, distance = Infinity;
      for (let i = Math.max(0, this.firstVisible(panel.side, rows)); i < rows.length; ++i) {
        const row = rows[i], start = panel.side.start[row], end = start + panel.side.length[row];
        if (start > time + slack) break;
        const off = Math.max(start - time, time - end, 0);
        if (off <= slack && off <= distance) { best = row; distance = off; }
      }
      if (best !== null) return {side: panel.side, row: best};
    }
    return null;
  }

  pick(found, bring = false) {
    this.picked = found;
    this.tip.textContent = found ? this.describe(found) : "";
    if (found && bring) {
      const start = found.side.start[found.row], span = this.to - this.from;
      if (start < this.from || start > this.to) { this.from = start - span / 2; this.to = this.from + span; }
    }
    this.redraw();
  }

  describe({side, row}) {
    const {timeline} = this, unit = timeline.unit_ns;
    const lines = [`${labelOf(timeline, row)}, op ${opOf(timeline, row)}, ` +
                   placeOf(timeline, row) + (timeline.chunk[row] >= 0 ? `, stage ${timeline.chunk[row]}` : "")];
    for (const each of timeline.sides) {
      if (!each.ran[row]) { lines.push(`${each.name}: did not run`); continue; }
      const start = each.start[row] * unit, length = each.length[row] * unit;
      const bound = each.bound[row];
      const why = bound < 0 ? "it waited for nothing" :
        `it waited for ${timeline.bound_kinds[each.boundKind[row]]}: ${labelOf(timeline, bound)} on ` +
        `rank ${timeline.lanes[timeline.lane[bound]].rank}`;
      lines.push(`${each.name}: ${timeText(start)} to ${timeText(start + length)}, ${timeText(length)}; ${why}`);
    }
    if (!side) return "";
    return lines.join("\n");
  }

  step(direction) {
    const side = this.picked ? this.picked.side : this.timeline.sides[0];
    const lane = this.picked ? this.timeline.lane[this.picked.row] : this.rows[0].index;
    const rows = side.byLane[lane];
    const here = this.picked ? rows.indexOf(this.picked.row) : -1;
    const next = here < 0 ? 0 : here + direction;
    if (next >= 0 && next < rows.length) this.pick({side, row: rows[next]}, true);
  }

  sideways(direction) {
    if (!this.picked) return this.step(1);
    const places = this.panels.flatMap((panel) => panel.lanes.map((lane) => ({side: panel.side, index: lane.index})));
    const here = places.findIndex((place) => place.side === this.picked.side &&
                                             place.index === this.timeline.lane[this.picked.row]);
    const start = this.picked.side.start[this.picked.row];
    for (let i = here + direction; i >= 0 && i < places.length; i += direction) {
      const rows = places[i].side.byLane[places[i].index];
      if (rows.length === 0) continue;
      let best = rows[0];
      for (const row of rows) if (Math.abs(places[i].side.start[row] - start) <
                                  Math.abs(places[i].side.start[best] - start)) best = row;
      return this.pick({side: places[i].side, row: best}, true);
    }
    return undefined;
  }

  wheel(event) {
    if (event.shiftKey) return this.pan(Math.sign(event.deltaY || event.deltaX) * 0.1);
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) return this.pan(event.deltaX / this.width);
    return this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.time(event.offsetX));
  }

  grab(event) {
    this.grabbed = {x: event.offsetX, from: this.from, to: this.to};
    this.pick(this.at(event.offsetX, event.offsetY));
  }

  move(event) {
    if (this.grabbed) {
      const shift = (this.grabbed.x - event.offsetX) / this.width * (this.grabbed.to - this.grabbed.from);
      this.from = this.grabbed.from + shift;
      this.to = this.grabbed.to + shift;
      this.keepInside();
      return;
    }
    const found = this.at(event.offsetX, event.offsetY);
    if (found) this.pick(found);
  }

  key(event) {
    const actions = {ArrowLeft: () => this.pan(-0.1), ArrowRight: () => this.pan(0.1), "+": () => this.zoom(0.8),
                     "=": () => this.zoom(0.8), "-": () => this.zoom(1.25), 0: () => this.all(), n: () => this.step(1),
                     p: () => this.step(-1), ArrowDown: () => this.sideways(1), ArrowUp: () => this.sideways(-1),
                     Escape: () => this.pick(null)};
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }
}
