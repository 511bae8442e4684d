"use strict";
// What the page is given, decoded: columns of numbers, one value an op.

function bytesOf(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes.buffer;
}

function decodedSide(side, count) {
  if (!side) return null;
  return {start: new Uint32Array(bytesOf(side.start)), length: new Uint32Array(bytesOf(side.length)),
          bound: new Int32Array(bytesOf(side.bound)), boundKind: new Uint8Array(bytesOf(side.bound_kind)),
          ran: new Uint8Array(bytesOf(side.ran)), path: side.path, memory: side.memory.map((text) =>
            new Float32Array(bytesOf(text))), span: side.span, count};
}

// Rows of a lane, in order of their start.
function rowsByLane(timeline, side) {
  const lanes = timeline.lanes.map(() => []);
  for (let i = 0; i < side.count; ++i) if (side.ran[i]) lanes[timeline.lane[i]].push(i);
  for (const rows of lanes) rows.sort((a, b) => side.start[a] - side.start[b] || a - b);
  return lanes.map((rows) => Int32Array.from(rows));
}

function decoded(raw) {
  const timeline = {...raw, lane: new Uint16Array(bytesOf(raw.lane)), kind: new Uint8Array(bytesOf(raw.kind)),
                    chunk: new Int16Array(bytesOf(raw.chunk)), microbatch: new Uint16Array(bytesOf(raw.microbatch)),
                    peer: new Int16Array(bytesOf(raw.peer))};
  timeline.sides = ["predicted", "measured"].filter((name) => raw[name]).map((name) =>
    ({name, ...decodedSide(raw[name], raw.count)}));
  for (const side of timeline.sides) side.byLane = rowsByLane(timeline, side);
  timeline.styleNames = Object.keys(STYLES);
  const styleOf = timeline.kinds.map((kind) => timeline.styleNames.indexOf(styleName(kind)));
  timeline.styles = timeline.kind.map((kind) => styleOf[kind]);
  timeline.span = Math.max(1, ...timeline.sides.map((side) => side.span));
  return timeline;
}

function timeText(ns) {
  const sign = ns < 0 ? "-" : "";
  const value = Math.abs(ns);
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["us", 1e3]])
    if (value >= size) return `${sign}${Number((value / size).toPrecision(4))} ${unit}`;
  return `${sign}${value} ns`;
}

const percentText = (value) => `${(100 * value).toFixed(1)}%`;

function bytesText(bytes) {
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]])
    if (bytes >= size) return `${Number((bytes / size).toPrecision(4))} ${unit}`;
  return `${bytes} B`;
}

// Ops are numbered from 0 where `ops` is empty.
const opOf = (timeline, row) => timeline.ops.length > 0 ? timeline.ops[row] : row;

const NONE = 65535;  // no microbatch

// "F3" for a block; "send 0>1" for a message.
function labelOf(timeline, row) {
  const kind = timeline.kinds[timeline.kind[row]];
  const lane = timeline.lanes[timeline.lane[row]];
  const microbatch = timeline.microbatch[row] === NONE ? "" : String(timeline.microbatch[row]);
  if (kind === "send") return `send ${lane.rank}>${timeline.peer[row]} ${microbatch}`.trim();
  if (kind === "recv") return `recv ${timeline.peer[row]}>${lane.rank} ${microbatch}`.trim();
  return kind + microbatch;
}

function placeOf(timeline, row) {
  const lane = timeline.lanes[timeline.lane[row]];
  return `rank ${lane.rank} (${lane.datacenter}), lane ${lane.name}`;
}
