// The page of a table: the slider shows a snapshot, and a move cancels the request of the one before.
import { api, confirmed, failed, toast } from "./console.js";
import { message, rowsTable, sizeText } from "./rows.js";

const facts = JSON.parse(document.getElementById("facts").textContent);
const { table, branch, snapshots } = facts;
const slider = document.getElementById("slider");
const rows = document.getElementById("rows");
let position = facts.position;
let request = new AbortController();

async function showRows() {
  if (!rows || !snapshots.length) return;
  request.abort();
  request = new AbortController();
  const { signal } = request;
  const query = new URLSearchParams({ when: snapshots[position].id, limit: "50", ...(branch && { branch }) });
  try {
    const result = await (await api("GET", `/tables/${table}/travel?${query}`, { signal })).json();
    if (signal.aborted) return;
    rows.replaceChildren(result.rows.length ? rowsTable(result.columns, result.rows, `First rows of ${table}`) : message("No rows as of then."));
  } catch (error) {
    if (error.name !== "AbortError") rows.replaceChildren(message(`${error.message}\n${error.hint ?? ""}`, "error"));
  }
}

function fact(name, text) {
  for (const element of document.querySelectorAll(`[data-fact="${name}"]`)) element.textContent = text;
}

function show(place) {
  position = Math.max(0, Math.min(snapshots.length - 1, place));
  const snapshot = snapshots[position];
  if (slider) {
    slider.value = position;
    slider.setAttribute("aria-valuetext", `${snapshot.operation} ${snapshot.at}, ${snapshot.rows_total ?? "?"} rows`);
  }
  fact("rows_total", (snapshot.rows_total ?? 0).toLocaleString("en"));
  fact("files_total", snapshot.files_total?.toLocaleString("en") ?? "");
  fact("bytes_total", sizeText(snapshot.bytes_total));
  fact("at", snapshot.at.slice(0, 19).replace("T", " "));
  fact("operation", snapshot.operation);
  fact("id", snapshot.id);
  fact("place", `${position + 1} of ${snapshots.length}`);
  document.querySelectorAll(".timeline rect").forEach((bar, index) => bar.classList.toggle("on", index === position));
  for (const element of document.querySelectorAll("[data-compare], [data-rollback]")) element.hidden = snapshot.is_current;
  const address = new URL(location.href);
  if (snapshot.is_current) address.searchParams.delete("at");
  else address.searchParams.set("at", snapshot.id);
  history.replaceState(null, "", address);
  const compare = document.querySelector("[data-compare]");
  if (compare) compare.href = `/ui/t/${table}?${new URLSearchParams({ ...(branch && { branch }), vs: snapshot.id, tab: "diff" })}`;
  const sql = document.querySelector("[data-sql]");
  if (sql) sql.href = `/ui/sql?${new URLSearchParams({ q: `select * from ${table} limit 100`, ...(branch && { branch }), ...(!snapshot.is_current && { at: snapshot.id }) })}`;
  showRows();
}

slider?.addEventListener("input", () => show(Number(slider.value)));
document.querySelectorAll("[data-earlier], [data-later]").forEach((link) =>
  link.addEventListener("click", (event) => {
    event.preventDefault();
    show(position + ("earlier" in link.dataset ? -1 : 1));
  }),
);

document.querySelector("[data-rollback]")?.addEventListener("click", async (event) => {
  const button = event.currentTarget;
  const snapshot = snapshots[position];
  const now = snapshots.find((entry) => entry.is_current);
  const text = `${table} goes from ${(now?.rows_total ?? 0).toLocaleString("en")} rows in ${now?.files_total ?? 0} files to ${(snapshot.rows_total ?? 0).toLocaleString("en")} rows in ${snapshot.files_total ?? 0} files, as of ${snapshot.at.slice(0, 19)}. Its history stays, so this can be rolled back, too.`;
  if (!(await confirmed(`Roll back ${table}?`, text, "Roll back"))) return;
  button.disabled = true;
  try {
    const query = branch ? `?${new URLSearchParams({ branch })}` : "";
    await api("POST", `/tables/${table}/rollback${query}`, { body: { to: snapshot.id } });
    toast("Rolled back.");
    location.assign(`/ui/t/${table}${query}`);
  } catch (error) {
    failed(error);
    button.disabled = false;
  }
});

// ---- on demand: what reads the data ----------------------------------------------------------------------------------
const quoted = (name) => `\`${name.replaceAll("`", "``")}\``;
const named = table.split(".").map(quoted).join(".");
async function query(sql, limit) {
  const as_of = snapshots.length && !snapshots[position].is_current ? snapshots[position].id : "";
  return (await api("POST", "/query", { body: { sql, limit, branch, as_of } })).json();
}

const MOST_PROFILED = 40;
const SIMPLE = /^(tinyint|smallint|int|bigint|float|double|decimal.*|date|timestamp.*|string|boolean)$/;
document.getElementById("profile")?.addEventListener("click", async (event) => {
  const button = event.currentTarget;
  const lines = [...document.querySelectorAll("tr[data-column]")].filter((line) => SIMPLE.test(line.dataset.type)).slice(0, MOST_PROFILED);
  button.disabled = true;
  const parts = lines.map((line) => {
    const column = quoted(line.dataset.column);
    return `select count(*) - count(${column}) as nulls, count(distinct ${column}) as values, cast(min(${column}) as string) as least, cast(max(${column}) as string) as most from ${named}`;
  });
  try {
    const results = [];
    for (const part of parts) results.push((await query(part, 1)).rows[0]);
    document.querySelectorAll("[data-profile]").forEach((cell) => (cell.hidden = false));
    lines.forEach((line, index) => {
      const found = results[index];
      for (const [value, isCount] of [[found.nulls, true], [found.values, true], [found.least, false], [found.most, false]]) {
        const cell = line.insertCell();
        cell.textContent = value === null ? "null" : isCount ? Number(value).toLocaleString("en") : value;
        if (isCount) cell.className = "num";
      }
    });
    button.hidden = true;
  } catch (error) {
    failed(error);
    button.disabled = false;
  }
});

const partitions = document.getElementById("partition-rows");
if (partitions) {
  const columns = partitions.dataset.columns.split(",").filter((name) => document.querySelector(`tr[data-column="${CSS.escape(name)}"]`));
  if (columns.length) {
    const list = columns.map(quoted).join(", ");
    query(`select ${list}, count(*) as rows from ${named} group by ${list} order by ${list}`, 500)
      .then((result) => partitions.replaceChildren(rowsTable(result.columns, result.rows, "Partitions")))
      .catch((error) => partitions.replaceChildren(message(`${error.message}\n${error.hint ?? ""}`, "error")));
  } else partitions.replaceChildren(message("They are parts of a column's values: see the files in lake health --deep."));
}

showRows();
