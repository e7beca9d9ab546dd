// A question: how it was read, its statement, rows and chart; the statement can be edited and run again.
import { chartAddress } from "./chart.js";
import { api, exactJson } from "./console.js";
import { message, rowsTable } from "./rows.js";

const place = document.getElementById("answer");
const question = document.getElementById("q").value.trim();
const branch = new URLSearchParams(location.search).get("branch") ?? "";

function link(text, href, isMain = false) {
  const element = document.createElement("a");
  element.className = isMain ? "button primary" : "button";
  element.textContent = text;
  element.href = href;
  return element;
}

async function ask() {
  place.replaceChildren(message("Reading the question…"));
  try {
    const query = branch ? `?${new URLSearchParams({ branch })}` : "";
    show(await exactJson(await api("POST", `/ask${query}`, { body: { question } })));
  } catch (error) {
    place.replaceChildren(message(`${error.message}\n${error.hint ?? ""}`, "error"));
  }
}

function show(answer) {
  if (!answer.answered) {
    const choices = document.createElement("div");
    choices.className = "row";
    choices.append(...answer.choices.map((choice) => link(choice, `/ui/ask?${new URLSearchParams({ q: choice, ...(branch && { branch }) })}`)));
    place.replaceChildren(message(`This cannot be answered: ${answer.reason}`, "note"), choices);
    return;
  }
  const statement = document.createElement("pre");
  statement.textContent = answer.sql;
  const type = (position) => (answer.rows.every((row) => row[position] === null || ["number", "bigint"].includes(typeof row[position]) || /^-?\d+(\.\d+)?$/.test(row[position])) ? "double" : "string");
  // An answer has no types: what is made out here decides how a column is drawn, and is not shown.
  const columns = answer.columns.map((name, position) => ({ name, type: type(position), shownType: "" }));
  const chart = document.createElement("div");
  chart.id = "chart";
  chart.setAttribute("role", "img");
  chart.setAttribute("aria-label", "Chart of the answer");
  const kind = answer.chart?.mark;
  const address = new URLSearchParams({ q: answer.sql, ...(branch && { branch }), ...(kind && { chart: chartAddress([kind, answer.columns[0], answer.columns[1]]) }) });
  place.replaceChildren(message(answer.reading, "note"), ...(kind ? [chart] : []), answer.rows.length ? rowsTable(columns, answer.rows, "Answer") : message("No rows."), statement, link("Edit and run", `/ui/sql?${address}`, true));
  if (kind) draw(chart, kind, columns, answer.rows);
}

async function draw(chart, kind, columns, rows) {
  const [{ option }, library] = await Promise.all([import("./chart.js"), import("./vendor/charts.js")]);
  const drawn = library.init(chart, null, { renderer: "canvas" });
  drawn.setOption(option({ kind, x: 0, y: 1, by: -1 }, columns, rows));
  new ResizeObserver(() => drawn.resize()).observe(chart);
}

if (question) ask();
