// The options of a chart of a result, for ECharts.
const MOST_POINTS = 5000;
const BINS = 30;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const shades = () => [colour("--accent"), "#c2703d", "#5b6fc4", "#8d5aa5", "#6b8e23", "#b54c6a", "#3d8fc2", "#8a7a4a", "#2f9e6e", "#a23b3b"];

/** The choices of a chart as a part of an address. A name may have any letter, also a comma. */
export const chartAddress = (parts) => parts.map((part) => encodeURIComponent(part)).join(",").replace(/,+$/, "");
export function chartParts(text) {
  try {
    return text.split(",").map(decodeURIComponent);
  } catch {
    return text.split(","); // written by hand, with a bare %
  }
}

export function option({ kind, x, y, by }, columns, rows) {
  const axis = { axisLine: { lineStyle: { color: colour("--line") } }, axisLabel: { color: colour("--muted") }, splitLine: { lineStyle: { color: colour("--line") } }, nameTextStyle: { color: colour("--muted") } };
  const base = {
    color: shades(),
    animation: false,
    aria: { enabled: true },
    textStyle: { fontFamily: colour("--sans") },
    grid: { left: 12, right: 20, top: by >= 0 ? 40 : 32, bottom: 34, containLabel: true },
    tooltip: { trigger: kind === "scatter" || kind === "heatmap" ? "item" : "axis", renderMode: "richText", backgroundColor: colour("--surface"), borderColor: colour("--line"), textStyle: { color: colour("--text") } },
    xAxis: { ...axis, type: "category", name: columns[x]?.name, nameLocation: "middle", nameGap: 30 },
    yAxis: { ...axis, type: "value", name: by >= 0 ? "" : columns[y]?.name },
  };
  if (kind === "histogram") return { ...base, ...histogram(rows, y, columns, base) };
  if (kind === "heatmap") return { ...base, ...heatmap(rows, x, y, by, base) };
  if (kind === "scatter") {
    const isNumber = rows.every((row) => row[x] === null || !Number.isNaN(Number(row[x])));
    return { ...base, xAxis: { ...base.xAxis, type: isNumber ? "value" : "category", scale: true }, yAxis: { ...base.yAxis, scale: true }, series: series(rows, x, y, by, (name, points) => ({ name, type: "scatter", symbolSize: 6, data: points })), ...legend(by) };
  }
  const type = kind === "bar" ? "bar" : "line";
  const categories = [...new Set(rows.slice(0, MOST_POINTS).map((row) => label(row[x])))];
  const extra = kind === "area" ? { areaStyle: { opacity: 0.25 } } : {};
  return {
    ...base,
    xAxis: { ...base.xAxis, data: categories },
    dataZoom: categories.length > 60 ? [{ type: "inside" }] : undefined,
    series: series(rows, x, y, by, (name, points) => ({ name, type, showSymbol: points.length < 60, data: points, ...extra })),
    ...legend(by),
  };
}

const label = (value) => (value === null ? "null" : String(value));
const legend = (by) => (by >= 0 ? { legend: { top: 0, textStyle: { color: colour("--muted") }, type: "scroll" } } : {});

function series(rows, x, y, by, make) {
  const groups = new Map();
  for (const row of rows.slice(0, MOST_POINTS)) {
    const name = by >= 0 ? label(row[by]) : "";
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push([label(row[x]), row[y] === null ? null : Number(row[y])]);
  }
  return [...groups].slice(0, 20).map(([name, points]) => make(name || undefined, points));
}

function histogram(rows, y, columns, base) {
  const values = rows.map((row) => Number(row[y])).filter((value) => Number.isFinite(value));
  const least = Math.min(...values), most = Math.max(...values);
  const width = (most - least) / BINS || 1;
  const counts = new Array(BINS).fill(0);
  for (const value of values) counts[Math.min(BINS - 1, Math.floor((value - least) / width))] += 1;
  const names = counts.map((_, bin) => (least + bin * width).toPrecision(4));
  return { xAxis: { ...base.xAxis, name: columns[y]?.name, data: names }, yAxis: { ...base.yAxis, name: "rows" }, series: [{ type: "bar", barCategoryGap: "4%", data: counts }] };
}

function heatmap(rows, x, y, by, base) {
  const across = [...new Set(rows.map((row) => label(row[x])))];
  const column = by >= 0 ? by : x;
  const down = [...new Set(rows.map((row) => label(row[column])))];
  const places = [new Map(across.map((name, place) => [name, place])), new Map(down.map((name, place) => [name, place]))];
  const cells = rows.slice(0, MOST_POINTS).map((row) => [places[0].get(label(row[x])), places[1].get(label(row[column])), Number(row[y])]);
  const values = cells.map((cell) => cell[2]).filter(Number.isFinite);
  return {
    grid: { ...base.grid, bottom: 60 },
    xAxis: { ...base.xAxis, data: across },
    yAxis: { ...base.yAxis, type: "category", data: down },
    visualMap: { min: Math.min(...values), max: Math.max(...values), orient: "horizontal", left: "center", bottom: 0, textStyle: { color: colour("--muted") }, inRange: { color: [colour("--raised"), colour("--accent")] } },
    series: [{ type: "heatmap", data: cells }],
  };
}
