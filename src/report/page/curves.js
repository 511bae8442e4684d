// Validation of a training run's methods, over time or updates, and the table of its curves.

// 5 colours and 4 dashes in turn tell 20 methods apart.
const DASHES = ["", "7 4", "2 3", "9 3 2 3"], CURVE_COLOURS = ["#2b5c8a", "#d08418", "#8e4585", "#1f8a70", "#b3003b"];

const curveColumns = [
  ["method", (row) => row.method, true], ["seed", (row) => row.seed], ["rate", (row) => row.rate],
  ["validation", (row) => row.validation, false, (value) => value.toPrecision(4)],
  ["updates to target", (row) => row.updates], ["time to target", (row) => row.time_ns, false, timeText],
  ["kind", (row) => row.kind, true], ["exchange", (row) => row.period_ns, false, timeText],
  ["predicted", (row) => row.predicted_period_ns, false, timeText], ["fresh", (row) => row.fresh, false, percentText],
  ["WAN an exchange", (row) => row.wan_bytes, false, bytesText],
];

function styleOfCurve(methods, method) {
  const i = methods.indexOf(method);
  return {stroke: CURVE_COLOURS[i % CURVE_COLOURS.length], "stroke-dasharray": DASHES[i % DASHES.length],
          fill: "none", "stroke-width": 2};
}

function drawCurves(training) {
  const box = element("curves"), over = element("over").value;
  box.replaceChildren();
  const place = over === "time" ? (point) => point[1] : (point) => point[0];
  const methods = [...new Set(training.curves.map((curve) => curve.method))];
  const lines = training.curves.map((curve) => ({...curve, points: curve.points.filter((point) => point[3] !== null)}));
  const all = lines.flatMap((line) => line.points);
  if (all.length === 0) return void added(box, "p", "No validation was finite.");
  const losses = [...all.map((point) => point[3]), ...(training.target === null ? [] : [training.target])];
  const [least, most, last] = [Math.min(...losses), Math.max(...losses), Math.max(...all.map(place))];
  const left = 70, width = 900, tall = 340, bottom = 36;
  const x = (at) => left + (width - left - 10) * at / (last || 1);
  const y = (loss) => 10 + (tall - bottom - 20) * (most === least ? 0.5 : (most - loss) / (most - least));
  const svg = drawn(box, "svg", {viewBox: `0 0 ${width} ${tall}`, role: "img",
    "aria-label": `Validation of ${methods.length} methods over ${over}; the table below has the numbers`});
  for (let i = 0; i <= 4; ++i) {
    const loss = least + (most - least) * i / 4, at = last * i / 4;
    drawn(svg, "line", {x1: left, x2: width - 10, y1: y(loss), y2: y(loss), class: "grid"});
    drawn(svg, "text", {x: left - 8, y: y(loss) + 4, "text-anchor": "end"}, loss.toPrecision(4));
    drawn(svg, "text", {x: x(at), y: tall - bottom + 14, "text-anchor": i === 4 ? "end" : "middle"},
          over === "time" ? timeText(at) : String(Math.round(at)));
  }
  if (training.target !== null)
    drawn(svg, "line", {x1: left, x2: width - 10, y1: y(training.target), y2: y(training.target), class: "target"});
  for (const line of lines) {
    const points = line.points.map((point) => `${x(place(point)).toFixed(1)},${y(point[3]).toFixed(1)}`).join(" ");
    const shown = drawn(svg, "polyline", {points, ...styleOfCurve(methods, line.method)});
    drawn(shown, "title", {}, `${line.method}, seed ${line.seed}`);
  }
  const legend = element("curves-legend");
  legend.replaceChildren();
  for (const method of methods) {
    const item = added(legend, "li");
    const patch = drawn(item, "svg", {viewBox: "0 0 40 10", width: 40, height: 10, "aria-hidden": "true"});
    drawn(patch, "line", {x1: 0, x2: 40, y1: 5, y2: 5, ...styleOfCurve(methods, method)});
    item.append(` ${method}`);
  }
}

function fillTraining(training) {
  if (!training) return;
  element("training").hidden = false;
  element("table-title").textContent = "Curves";
  element("training-text").textContent = training.target === null ? "" : "The dashed level is the target.";
  element("over").addEventListener("change", () => drawCurves(training));
  drawCurves(training);
}
