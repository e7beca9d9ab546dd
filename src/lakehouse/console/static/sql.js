// The SQL page: one statement at a time runs on the server; the address holds it, its options and its chart.
import { chartAddress, chartParts } from "./chart.js";
import { api, exactJson, failed, toast } from "./console.js";
import { cellText, isNumber, message, rowsTable } from "./rows.js";

const field = document.getElementById("statement");
const options = document.getElementById("options");
const state = document.getElementById("state");
const problem = document.getElementById("problem");
const user = document.querySelector(".who span")?.textContent ?? "";
const DRAFT = `lake-sql-draft:${user}`;
const RECENT = `lake-sql-recent:${user}`;
const MOST_RECENT = 30;
const MOST_IN_MEMORY = 20000;

// ---- the editor: the text field, until CodeMirror is there -----------------------------------------------------------
let editor = null;
const text = () => (editor ? editor.state.doc.toString() : field.value);
function selected() {
  if (editor) {
    const { from, to } = editor.state.selection.main;
    return editor.state.sliceDoc(from, to);
  }
  return field.value.slice(field.selectionStart, field.selectionEnd);
}
function setText(value) {
  if (editor) editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
  else field.value = value;
  localStorage.setItem(DRAFT, value);
}
/** What runs: the selected part, or all of it. */
const wanted = () => (selected().trim() || text().trim()).replace(/;\s*$/, "");
const keepDraft = () => localStorage.setItem(DRAFT, text());

if (!field.value) field.value = localStorage.getItem(DRAFT) ?? "";
field.addEventListener("input", keepDraft);
field.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    run();
  } else if (event.code === "KeyF" && event.shiftKey && event.altKey) {
    event.preventDefault();
    format();
  }
});

async function openEditor() {
  const [cm, schema] = await Promise.all([import("./vendor/editor.js"), tablesForCompletion()]);
  const { EditorView, basicSetup, EditorState, Prec, keymap, placeholder, sql, SQLDialect, StandardSQL, HighlightStyle, syntaxHighlighting, tags } = cm;
  const spark = SQLDialect.define({ ...StandardSQL.spec, identifierQuotes: "`", doubleQuotedStrings: true });
  const colours = HighlightStyle.define([
    { tag: [tags.keyword, tags.operatorKeyword], class: "tok-keyword" },
    { tag: [tags.string, tags.special(tags.string)], class: "tok-string" },
    { tag: [tags.number, tags.bool, tags.null], class: "tok-number" },
    { tag: [tags.lineComment, tags.blockComment], class: "tok-comment" },
    { tag: [tags.typeName, tags.standard(tags.name)], class: "tok-type" },
  ]);
  const wasFocused = document.activeElement === field;
  const extensions = [
    Prec.highest(
      keymap.of([
        { key: "Mod-Enter", run: () => (run(), true) },
        { key: "Shift-Alt-f", run: () => (format(), true) },
        { key: "Escape", run: () => (current ? (cancel(), true) : false) },
      ]),
    ),
    EditorView.cspNonce.of(document.querySelector('meta[name="style-nonce"]').content),
    basicSetup,
    syntaxHighlighting(colours),
    completion(cm, spark, schema),
    placeholder(field.placeholder),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": "Statement" }),
    EditorView.updateListener.of((update) => update.docChanged && keepDraft()),
  ];
  editor = new EditorView({ state: EditorState.create({ doc: field.value, extensions }), parent: field.parentElement });
  field.hidden = true;
  if (wasFocused || !field.value) editor.focus();
}

/** The language with its completion; after a name and a dot come the names below it, and no keywords. */
function completion({ EditorState, sql }, dialect, schema) {
  const keywordCompletion = (label, type) => ({ label, type, boost: -1, isKeyword: true });
  const language = sql({ dialect, schema, upperCaseKeywords: false, keywordCompletion });
  const sources = EditorState.create({ extensions: language }).languageDataAt("autocomplete", 0);
  const withoutKeywords = (source) => async (context) => {
    const result = await source(context);
    return result && context.matchBefore(/\.`?\w*/) ? { ...result, options: result.options.filter((entry) => !entry.isKeyword) } : result;
  };
  return [dialect.language, ...sources.map((source) => dialect.language.data.of({ autocomplete: withoutKeywords(source) }))];
}

async function tablesForCompletion() {
  const branch = options.elements.branch.value;
  const query = new URLSearchParams({ details: "true", ...(branch && { branch }) });
  try {
    const listed = await (await api("GET", `/tables?${query}`)).json();
    return Object.fromEntries(listed.tables.map((table) => [table.name, table.columns.map((column) => column.name)]));
  } catch {
    return {};
  }
}

// ---- running ---------------------------------------------------------------------------------------------------------
let current = null; // the statement that runs: {id, reads, word, isCanceled, wantsCancel}
let shown = null; // what the grid shows: {sql, options, reads, id, columns, total, offsets, chunks, isTruncated}

function chosen() {
  const { branch, at, engine } = options.elements;
  return { branch: branch.value, as_of: at.value.trim(), engine: engine.value };
}

function updateAddress(sql) {
  const { branch, as_of, engine } = chosen();
  const address = new URL(location.href);
  for (const [name, value] of Object.entries({ q: sql, branch, at: as_of, engine, chart: chartText() })) {
    if (value) address.searchParams.set(name, value);
    else address.searchParams.delete(name);
  }
  history.replaceState(null, "", address);
}

function busy(isBusy) {
  document.getElementById("cancel").hidden = !isBusy;
}

const sendCancel = (statement) => api("POST", `/statements/${statement.id}/cancel`, { body: {} }).catch(() => {});

/** A query is left at once. A write may be committed before the request to cancel arrives, so its outcome is waited for. */
async function cancel() {
  const statement = current;
  if (!statement) return;
  statement.wantsCancel = true;
  if (await statement.reads) {
    statement.isCanceled = true;
    if (current === statement) {
      current = null;
      busy(false);
      state.textContent = "Canceled.";
    }
  } else if (current === statement) state.textContent = statement.word = "Canceling…";
  if (statement.id) await sendCancel(statement);
}

/** Makes room for the next statement: a query is canceled, a write is not. Returns whether there is room. */
async function isFree() {
  while (current) {
    const statement = current;
    const reads = await statement.reads;
    if (current !== statement) continue;
    if (!reads) {
      if (!statement.wantsCancel) state.textContent = statement.word = "Still running…";
      toast("The statement before is still running, so no other was started.");
      return false;
    }
    await cancel();
  }
  return true;
}

async function run() {
  const sql = wanted();
  if (!sql || !(await isFree()) || current) return; // another run may have waited, too
  const given = chosen();
  const statement = { id: "", reads: onlyReads(sql), word: "Running…", isCanceled: false, wantsCancel: false };
  current = statement;
  busy(true);
  problem.replaceChildren();
  state.textContent = statement.word;
  updateAddress(text().trim());
  const begun = performance.now();
  const seconds = (digits) => `${((performance.now() - begun) / 1000).toFixed(digits)} s`;
  try {
    remember(sql);
    let answer = await (await api("POST", "/statements", { body: { statement: sql, wait_timeout: "0s", ...given } })).json();
    statement.id = answer.statement_id;
    if (statement.wantsCancel) sendCancel(statement);
    for (let pause = 30; ["PENDING", "RUNNING"].includes(answer.status.state); pause = Math.min(pause * 1.5, 1000)) {
      if (statement.isCanceled) return;
      await new Promise((resolve) => setTimeout(resolve, pause));
      if (statement.isCanceled) return;
      state.textContent = `${statement.word} ${seconds(1)}`;
      answer = await exactJson(await api("GET", `/statements/${statement.id}`));
    }
    if (statement.isCanceled) return;
    if (answer.status.state === "CANCELED") {
      state.textContent = "Canceled.";
      return;
    }
    if (answer.status.state !== "SUCCEEDED") throw Object.assign(new Error(answer.status.error?.message), answer.status.error);
    state.textContent = `${seconds(2)}${statement.wantsCancel ? " · it was done before it could be canceled" : ""}`;
    await show({ sql, options: given, reads: await statement.reads }, answer);
  } catch (error) {
    if (statement.isCanceled) return;
    state.textContent = "";
    showProblem(error);
  } finally {
    if (current === statement) {
      current = null;
      busy(false);
    }
  }
}

async function show(statement, answer) {
  const { manifest, result } = answer;
  shown = {
    ...statement,
    id: answer.statement_id,
    columns: manifest.schema.columns.map((column) => ({ name: column.name, type: column.type_text })),
    total: manifest.total_row_count,
    count: manifest.total_chunk_count,
    offsets: manifest.chunks.map((part) => part.row_offset),
    chunks: new Map(result ? [[0, result.data_array]] : []),
    isTruncated: manifest.truncated,
  };
  document.getElementById("none").hidden = true;
  document.getElementById("result").hidden = false;
  // A download runs the statement again.
  for (const part of document.querySelectorAll("[data-download]")) part.hidden = !shown.reads;
  const rows = `${shown.total.toLocaleString("en")} row${shown.total === 1 ? "" : "s"}`;
  document.getElementById("facts").textContent = `${rows} · ${shown.columns.length} columns${shown.isTruncated ? " · cut at the limit of the service" : ""}`;
  fillChartOptions();
  await showGrid();
  await showChart();
}

async function chunk(number) {
  if (!shown.chunks.has(number)) {
    const { id, chunks } = shown;
    const answer = await exactJson(await api("GET", `/statements/${id}/result/chunks/${number}`));
    if (chunks.size > 24) chunks.delete([...chunks.keys()].find((key) => key !== 0));
    chunks.set(number, answer.data_array);
  }
  return shown.chunks.get(number);
}

/** The chunk that holds a row: the last one that does not begin behind it. */
function chunkOf(row) {
  let [low, high] = [0, shown.offsets.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (shown.offsets[middle] <= row) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Rows of the result, from as many chunks as they lie in. */
async function rowsBetween(from, to) {
  const rows = [];
  for (let row = from; row < Math.min(to, shown.total); ) {
    const number = chunkOf(row);
    const part = await chunk(number);
    const start = row - shown.offsets[number];
    const taken = part.slice(start, start + to - row);
    if (!taken.length) break;
    for (const entry of taken) rows.push(entry);
    row += taken.length;
  }
  return rows;
}

// ---- the grid --------------------------------------------------------------------------------------------------------
let grid = null;
let gridLibrary = null;

/** The order of two numbers as Spark sorts them: NULL first, NaN last. */
function inOrder(left, right) {
  const [a, b] = [left, right].map((value) => (value === null || typeof value === "bigint" ? value : Number(value)));
  if (a === null || b === null) return (a !== null) - (b !== null);
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
  return a < b ? -1 : Number(a > b);
}

async function showGrid() {
  const place = document.getElementById("grid");
  grid?.destroy();
  grid = null;
  if (!shown.columns.length || !shown.total) {
    place.replaceChildren(message(shown.columns.length ? "No rows." : "Done."));
    place.className = "";
    return;
  }
  try {
    gridLibrary ??= await import("./vendor/grid.js");
  } catch {
    place.replaceChildren(rowsTable(shown.columns, await rowsBetween(0, 500), "First rows of the result"));
    return;
  }
  const isSmall = shown.total <= MOST_IN_MEMORY;
  place.replaceChildren();
  const isShort = shown.total < 12;
  place.className = isShort ? "grid short" : "grid";
  const columnDefs = shown.columns.map((column, position) => ({
    colId: String(position),
    headerName: column.name,
    valueGetter: (cell) => cell.data?.[position],
    valueFormatter: (cell) => (cell.data === undefined ? "…" : cellText(cell.value)),
    cellClass: (cell) => [...(isNumber(column.type) ? ["num"] : []), ...(cell.value === null ? ["null"] : [])],
    filter: isSmall ? "agTextColumnFilter" : false,
    sortable: isSmall,
    ...(isNumber(column.type) && {
      comparator: inOrder,
      filter: isSmall && "agNumberColumnFilter",
      // A decimal is text, and a long bigint is no number either, so that all of their digits are shown.
      filterValueGetter: (row) => (row.data?.[position] == null ? null : Number(row.data[position])),
      headerClass: "ag-right-aligned-header",
    }),
  }));
  const { createGrid, themeQuartz, colorSchemeDark, colorSchemeLight } = gridLibrary;
  const isDark = getComputedStyle(document.documentElement).colorScheme === "dark";
  const style = getComputedStyle(document.documentElement);
  const theme = themeQuartz.withPart(isDark ? colorSchemeDark : colorSchemeLight).withParams({
    backgroundColor: style.getPropertyValue("--surface").trim(),
    foregroundColor: style.getPropertyValue("--text").trim(),
    accentColor: style.getPropertyValue("--accent").trim(),
    borderColor: style.getPropertyValue("--line").trim(),
    fontFamily: style.getPropertyValue("--mono").trim(),
    fontSize: 12.5,
    headerFontFamily: style.getPropertyValue("--sans").trim(),
    spacing: 5,
  });
  const common = { theme, columnDefs, styleNonce: document.querySelector('meta[name="style-nonce"]').content, defaultColDef: { resizable: true, minWidth: 90 }, autoSizeStrategy: { type: "fitCellContents" }, suppressFieldDotNotation: true };
  if (isSmall) {
    grid = createGrid(place, { ...common, domLayout: isShort ? "autoHeight" : "normal", rowData: await rowsBetween(0, shown.total) });
    return;
  }
  const result = shown;
  grid = createGrid(place, {
    ...common,
    rowModelType: "infinite",
    cacheBlockSize: 200,
    maxBlocksInCache: 20,
    infiniteInitialRowCount: shown.total,
    datasource: {
      rowCount: shown.total,
      getRows: (block) => {
        if (result !== shown) return block.failCallback();
        rowsBetween(block.startRow, block.endRow).then((rows) => block.successCallback(rows, result.total), block.failCallback);
      },
    },
  });
  document.getElementById("facts").textContent += " · sort and filter a large result in its statement";
}

// ---- charts ----------------------------------------------------------------------------------------------------------
const chartOptions = Object.fromEntries([...document.querySelectorAll("#chart-options select")].map((select) => [select.name, select]));
let wantedChart = new URLSearchParams(location.search).get("chart") ?? "";
const chartText = () => (chartOptions.kind.value ? chartAddress(["kind", "x", "y", "by"].map((name) => chartOptions[name].value)) : "");

function fillChartOptions() {
  const names = shown.columns.map((column) => column.name);
  const numeric = shown.columns.filter((column) => isNumber(column.type)).map((column) => column.name);
  const [kind, x, y, by] = chartParts(wantedChart || chartText());
  const fill = (select, values, value, first) => {
    select.replaceChildren(...(first === undefined ? [] : [new Option(first, "")]), ...values.map((name) => new Option(name, name)));
    if (values.includes(value)) select.value = value;
  };
  chartOptions.kind.value = [...chartOptions.kind.options].some((option) => option.value === kind) ? kind : "";
  fill(chartOptions.x, names, x ?? names[0]);
  fill(chartOptions.y, numeric.length ? numeric : names, y ?? numeric.find((name) => name !== chartOptions.x.value));
  if (!y && numeric.length) chartOptions.y.value = numeric.find((name) => name !== chartOptions.x.value) ?? numeric[0];
  fill(chartOptions.by, names, by, "nothing");
  wantedChart = "";
}

let chart = null;
async function showChart() {
  const place = document.getElementById("chart");
  const kind = chartOptions.kind.value;
  for (const label of document.querySelectorAll("[data-for-chart]")) label.hidden = !kind || ("series" in label.dataset && kind === "histogram");
  place.hidden = !kind || !shown?.total;
  chart?.dispose();
  chart = null;
  if (place.hidden) return;
  const [{ option }, library] = await Promise.all([import("./chart.js"), import("./vendor/charts.js")]);
  const rows = await rowsBetween(0, MOST_IN_MEMORY);
  const index = (name) => shown.columns.findIndex((column) => column.name === name);
  chart = library.init(place, null, { renderer: "canvas" });
  chart.setOption(option({ kind, x: index(chartOptions.x.value), y: index(chartOptions.y.value), by: index(chartOptions.by.value) }, shown.columns, rows));
  place.setAttribute("aria-label", `${kind} chart of ${chartOptions.y.value} by ${chartOptions.x.value}`);
}
for (const select of Object.values(chartOptions)) {
  select.addEventListener("change", () => {
    updateAddress(text().trim());
    showChart().catch(failed);
  });
}
new ResizeObserver(() => chart?.resize()).observe(document.getElementById("chart"));
document.addEventListener("themechange", () => shown && (showGrid().catch(failed), showChart().catch(failed)));

// ---- export, copy, explain, recent -----------------------------------------------------------------------------------
const TYPES = { csv: "text/csv", parquet: "application/vnd.apache.parquet", arrow: "application/vnd.apache.arrow.stream" };
for (const button of document.querySelectorAll("[data-export]")) {
  button.addEventListener("click", async () => {
    if (!shown.reads) return; // it would run again
    button.disabled = true;
    try {
      const answer = await api("POST", "/query", { body: { sql: shown.sql, ...shown.options }, headers: { Accept: TYPES[button.dataset.export] } });
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await answer.blob());
      link.download = `result.${button.dataset.export}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    } catch (error) {
      failed(error);
    } finally {
      button.disabled = false;
    }
  });
}
document.getElementById("copy").addEventListener("click", async () => {
  try {
    const rows = await rowsBetween(0, 10000);
    const cell = (value) => (value === null ? "" : cellText(value)).replace(/[\t\n]/g, " ");
    const lines = [shown.columns.map((column) => column.name), ...rows].map((row) => row.map(cell).join("\t"));
    await navigator.clipboard.writeText(lines.join("\n"));
    toast(`Copied ${rows.length.toLocaleString("en")} rows.`);
  } catch (error) {
    failed(error);
  }
});
/** What the service says of a text: set out in lines, and whether it only reads. */
const checked = async (sql) => (await api("POST", "/format", { body: { sql } })).json();
const onlyReads = (sql) => checked(sql).then((answer) => answer.reads, () => false);
const showProblem = (error) => problem.replaceChildren(message(`${error.message}\n${error.hint ?? ""}`, "error"));

async function format() {
  const before = text();
  problem.replaceChildren();
  try {
    const { sql } = await checked(before);
    if (text() === before && sql !== before) setText(sql); // not over what was typed meanwhile
  } catch (error) {
    showProblem(error);
  }
}
document.getElementById("format").addEventListener("click", format);

document.getElementById("explain").addEventListener("click", async () => {
  const sql = wanted();
  if (!sql) return;
  problem.replaceChildren();
  try {
    if (!(await checked(sql)).reads) return problem.replaceChildren(message("Explain reads as the query would. This statement would change something, so it was not run.", "note"));
    const answer = await (await api("POST", "/query", { body: { sql, explain: true, limit: 1, ...chosen() } })).json();
    problem.replaceChildren(explained(answer.explain ?? { engine: answer.engine }));
  } catch (error) {
    showProblem(error);
  }
});

function explained({ engine, reason, files_read, files_total, plan }) {
  const lines = [`Engine: ${engine}. ${reason ?? ""}`];
  if (files_total != null) lines.push(`Files: ${files_read ?? "?"} of ${files_total} read.`);
  const note = message(lines.join("\n"), "note");
  if (plan) {
    const block = document.createElement("pre");
    block.textContent = plan;
    note.append(block);
  }
  return note;
}

const stored = () => JSON.parse(localStorage.getItem(RECENT) ?? "[]");
function remember(sql, name = "") {
  const others = stored().filter((entry) => entry.sql !== sql || (entry.name && !name));
  const kept = others.some((entry) => entry.sql === sql) ? others : [{ sql, name }, ...others];
  localStorage.setItem(RECENT, JSON.stringify([...kept.filter((entry) => entry.name), ...kept.filter((entry) => !entry.name).slice(0, MOST_RECENT)]));
  showRecent();
}
function showRecent() {
  const select = document.getElementById("recent");
  const entries = stored();
  const group = (title, list) => {
    if (!list.length) return [];
    const element = document.createElement("optgroup");
    element.label = title;
    element.append(...list.map((entry) => new Option(entry.name || entry.sql.replace(/\s+/g, " ").slice(0, 70), entry.sql)));
    return [element];
  };
  const saved = entries.filter((entry) => entry.name);
  document.getElementById("saved-list").replaceChildren(...(saved.length ? saved.map(savedItem) : [message("Nothing is saved yet.")]));
  select.replaceChildren(new Option("Recent…", ""), ...group("Saved", saved), ...group("Recent", entries.filter((entry) => !entry.name)));
}
document.getElementById("recent").addEventListener("change", (event) => {
  if (event.target.value) setText(event.target.value);
  event.target.value = "";
});
/** A statement in the list of saved ones: its name loads it, and it can be removed. */
function savedItem(entry) {
  const item = document.createElement("li");
  item.className = "row";
  const load = document.createElement("button");
  load.type = "button";
  load.className = "quiet";
  load.textContent = entry.name;
  load.title = entry.sql;
  load.addEventListener("click", () => {
    setText(entry.sql);
    document.getElementById("saved").close();
  });
  const remove = document.createElement("button");
  remove.type = "button";
  remove.className = "danger push";
  remove.textContent = "Remove";
  remove.setAttribute("aria-label", `Remove ${entry.name}`);
  remove.addEventListener("click", () => {
    localStorage.setItem(RECENT, JSON.stringify(stored().filter((other) => other.name !== entry.name)));
    showRecent();
  });
  item.append(load, remove);
  return item;
}
document.getElementById("save-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = event.target.elements.name;
  const sql = text().trim();
  if (!sql) return toast("There is no statement to save.", true);
  localStorage.setItem(RECENT, JSON.stringify(stored().filter((entry) => entry.name !== field.value)));
  remember(sql, field.value);
  toast(`Saved as ${field.value}.`);
  field.value = "";
});

document.getElementById("run").addEventListener("click", () => run());
document.getElementById("cancel").addEventListener("click", cancel);
document.addEventListener("keydown", (event) => event.key === "Escape" && !event.defaultPrevented && !document.querySelector("dialog[open]") && current && cancel());
options.addEventListener("change", () => updateAddress(new URLSearchParams(location.search).get("q") ?? ""));
options.addEventListener("submit", (event) => event.preventDefault());

showRecent();
openEditor().catch(failed);
// A shared address shows what it describes; only what the service knows to read runs by itself, and no text of before.
const lines = (given) => given.replace(/\r\n?/g, "\n").trim();
const isOfAddress = lines(field.value) === lines(new URLSearchParams(location.search).get("q") ?? "");
if (isOfAddress && "runsAtOnce" in document.getElementById("editor").dataset) run();
