// The page of a table: the slider shows a snapshot, and a move cancels the request of the one before.
import { api, exactJson, failed } from "./console.js";
import { message, rowsTable, sizeText } from "./rows.js";
import { showTree } from "./metadata.js";

const facts = JSON.parse(document.getElementById("facts").textContent);
const { table, branch, snapshots } = facts;
const slider = document.getElementById("slider");
const rows = document.getElementById("rows");
let position = facts.position;
let request = new AbortController();
/** Whether the view is made by the service, not by this script. */
const isRendered = ["schema", "diff"].includes(facts.tab);

async function showRows() {
  if (!rows || !snapshots.length) return;
  request.abort();
  request = new AbortController();
  const { signal } = request;
  const query = new URLSearchParams({ when: snapshots[position].id, limit: "50", ...(branch && { branch }) });
  try {
    const result = await exactJson(await api("GET", `/tables/${table}/travel?${query}`, { signal }));
    if (signal.aborted) return;
    rows.replaceChildren(result.rows.length ? rowsTable(result.columns, result.rows, `First rows of ${table}`) : message("No rows as of then."));
  } catch (error) {
    if (error.name !== "AbortError") rows.replaceChildren(message(`${error.message}\n${error.hint ?? ""}`, "error"));
  }
}

/** Loads what the service writes into the page as of a snapshot: the columns, the difference. */
async function showView() {
  request.abort();
  request = new AbortController();
  const view = document.getElementById("view");
  view.setAttribute("aria-busy", "true");
  try {
    const answer = await api("GET", location.pathname + location.search, { signal: request.signal });
    const text = (await answer.text()).replace(/<style[^]*?<\/style>/, ""); // its nonce is not of this page
    const page = new DOMParser().parseFromString(text, "text/html");
    view.replaceChildren(...page.getElementById("view").childNodes);
    view.removeAttribute("aria-busy");
    showPartitions();
  } catch (error) {
    if (error.name === "AbortError") return;
    view.replaceChildren(message(`${error.message}\n${error.hint ?? ""}`, "error"));
    view.removeAttribute("aria-busy");
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
  document.querySelector("[data-earlier]")?.setAttribute("aria-disabled", String(position === 0));
  document.querySelector("[data-later]")?.setAttribute("aria-disabled", String(position === snapshots.length - 1));
  document.querySelectorAll(".timeline rect").forEach((bar, index) => bar.classList.toggle("on", index === position));
  for (const element of document.querySelectorAll('[data-compare], [data-act="rollback"]')) element.hidden = snapshot.is_current;
  history.replaceState(null, "", atSnapshot(location.href, snapshot));
  for (const link of document.querySelectorAll(".tabs a")) link.href = atSnapshot(link.href, snapshot);
  const compare = document.querySelector("[data-compare]");
  if (compare) compare.href = `/ui/t/${table}?${new URLSearchParams({ ...(branch && { branch }), vs: snapshot.id, tab: "diff" })}`;
  const sql = document.querySelector("[data-sql]");
  if (sql) sql.href = `/ui/sql?${new URLSearchParams({ q: `select * from ${table} limit 100`, ...(branch && { branch }), ...(!snapshot.is_current && { at: snapshot.id }) })}`;
  if (isRendered) showView();
  else showRows();
}

/** An address of this page at a snapshot. */
function atSnapshot(href, snapshot) {
  const address = new URL(href);
  if (snapshot.is_current) address.searchParams.delete("at");
  else address.searchParams.set("at", snapshot.id);
  return address;
}

slider?.addEventListener("input", () => show(Number(slider.value)));
document.querySelectorAll("[data-earlier], [data-later]").forEach((link) =>
  link.addEventListener("click", (event) => {
    event.preventDefault();
    show(position + ("earlier" in link.dataset ? -1 : 1));
  }),
);

// ---- changes from a point of the timeline: what each would change is shown before it does -----------------------------
const dialog = document.getElementById("act");
const onBranch = branch ? `?${new URLSearchParams({ branch })}` : "";
const words = (count, word) => `${count.toLocaleString("en")} ${word}`;
const ACTIONS = {
  branch: {
    title: (at) => `A branch with ${table} as of ${at}`,
    yes: "Create branch", isNamed: true, isNoted: true,
    text: "The branch has this table as it was then, and all others as they are now. No data is copied, and nothing changes here until the branch is published.",
    preview: differences,
    send: (snapshot, fields) => api("POST", "/branches", { body: { ...fields, from: branch || "main", table, at: snapshot.id } }),
    next: (answer) => `/ui/b/${answer.name}`,
  },
  tag: {
    title: (at) => `A tag of ${table} as of ${at}`,
    yes: "Create tag", isNamed: true, isNoted: true,
    text: "The tag names this table as it was then, and all others as they are now. It can be used wherever a moment is asked for.",
    preview: differences,
    send: (snapshot, fields) => api("POST", "/tags", { body: { ...fields, from: branch || "main", table, at: snapshot.id } }),
    next: (answer) => `/ui/t/${table}?${new URLSearchParams({ ...(branch && { branch }), at: answer.name })}`,
  },
  rollback: {
    title: (at) => `Roll back ${table} to ${at}?`,
    yes: "Roll back",
    text: "Its history stays, so this can be rolled back, too. Spark does it, which takes some seconds.",
    preview: differences,
    send: (snapshot) => api("POST", `/tables/${table}/rollback${onBranch}`, { body: { to: snapshot.id } }),
    next: () => `/ui/t/${table}${onBranch}`,
  },
  revert: {
    title: (at) => `Revert the commit of ${at}?`,
    yes: "Revert", isNoted: true,
    text: "It undoes the commit in all of its tables at once, and is a commit itself.",
    preview: reverted,
    send: (snapshot, fields) => api("POST", `/log/${commit}/revert`, { body: { message: fields.message } }),
    next: () => `/ui/t/${table}`,
  },
};
let commit = "";
let previewed = new AbortController();

/** What the table would be after a return to a snapshot, beside what it is now. */
async function differences(snapshot, signal) {
  const now = snapshots.find((entry) => entry.is_current);
  if (!now || now.id === snapshot.id) return { lines: ["The table is as it is now."], isPossible: true };
  const query = new URLSearchParams({ start: now.id, end: snapshot.id, limit: "0", ...(branch && { branch }) });
  const diff = await (await api("GET", `/tables/${table}/diff?${query}`, { signal })).json();
  const counts = ["added", "removed", "changed"].filter((kind) => diff[kind]).map((kind) => words(diff[kind], kind));
  const lines = [
    `${words(now.rows_total ?? 0, "rows")} now, ${words(snapshot.rows_total ?? 0, "rows")} then.`,
    counts.length ? `From now to then: ${counts.join(", ")}.` : "No row is another one.",
    ...diff.columns_added.map((column) => `+ column ${column.name} ${column.type}`),
    ...diff.columns_removed.map((column) => `− column ${column.name} ${column.type}`),
    ...diff.columns_changed.map(([old, next]) => `column ${old.name} ${old.type} is ${next.type}`),
  ];
  return { lines, isPossible: true };
}

/** What reverting the commit of a snapshot would change. */
async function reverted(snapshot, signal) {
  const query = new URLSearchParams({ table, snapshot: snapshot.id, ...(branch && { branch }) });
  const { commits } = await (await api("GET", `/log?${query}`, { signal })).json();
  if (!commits.length) return { lines: ["No commit of the log published this snapshot: another engine wrote it. Roll back instead."], isPossible: false };
  commit = commits[0].commit;
  const { changes } = await (await api("GET", `/log/${commit}/revert`, { signal })).json();
  const lines = changes.map((change) => `${change.table}: ${words(change.rows_before ?? 0, "rows")} now, ${words(change.rows_after ?? 0, "rows")} after${change.change === "changed" ? "" : ` (${change.change})`}${change.conflict ? "; it has changed since, so this is refused" : ""}`);
  return { lines: [`Commit ${commit}: ${commits[0].message || commits[0].what}`, ...lines], isPossible: !changes.some((change) => change.conflict) };
}

function lineElements(lines) {
  return lines.map((line) => Object.assign(document.createElement("p"), { textContent: line }));
}

for (const button of document.querySelectorAll("[data-act]")) {
  button.addEventListener("click", async () => {
    const action = ACTIONS[button.dataset.act];
    const snapshot = snapshots[position];
    const preview = document.getElementById("act-preview");
    const yes = document.getElementById("act-yes");
    dialog.dataset.action = button.dataset.act;
    document.getElementById("act-title").textContent = action.title(`${snapshot.at.slice(0, 19).replace("T", " ")} UTC`);
    dialog.querySelector("[data-named]").hidden = !action.isNamed;
    dialog.querySelector("[data-named] input").required = Boolean(action.isNamed);
    dialog.querySelector("[data-noted]").hidden = !action.isNoted;
    yes.textContent = action.yes;
    yes.disabled = true;
    preview.replaceChildren(...lineElements([action.text, "Comparing…"]));
    previewed = new AbortController();
    dialog.showModal();
    try {
      const { lines, isPossible } = await action.preview(snapshot, previewed.signal);
      preview.replaceChildren(...lineElements([action.text]), Object.assign(document.createElement("div"), { className: "note" }));
      preview.lastElementChild.append(...lineElements(lines));
      yes.disabled = !isPossible;
    } catch (error) {
      if (error.name !== "AbortError") preview.replaceChildren(message(`${error.message}\n${error.hint ?? ""}`, "error"));
    }
  });
}
dialog?.addEventListener("close", () => previewed.abort());
document.getElementById("act-form")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const action = ACTIONS[dialog.dataset.action];
  const yes = document.getElementById("act-yes");
  const fields = Object.fromEntries(new FormData(event.currentTarget));
  yes.disabled = true;
  yes.textContent = `${action.yes}…`;
  try {
    const answer = await (await action.send(snapshots[position], fields)).json();
    location.assign(action.next(answer));
  } catch (error) {
    dialog.querySelector(".error")?.remove();
    document.getElementById("act-preview").append(message(`${error.message}\n${error.hint ?? ""}`, "error"));
    yes.textContent = action.yes;
    yes.disabled = false;
  }
});

// ---- on demand: what reads the data ----------------------------------------------------------------------------------
const quoted = (name) => `\`${name.replaceAll("`", "``")}\``;
const named = table.split(".").map(quoted).join(".");
async function query(sql, limit) {
  const as_of = snapshots.length && !snapshots[position].is_current ? snapshots[position].id : "";
  return exactJson(await api("POST", "/query", { body: { sql, limit, branch, as_of } }));
}

const MOST_PROFILED = 40;
const SIMPLE = /^(tinyint|smallint|int|bigint|float|double|decimal.*|date|timestamp.*|string|boolean)$/;
// Of the document, because a move of the slider replaces the button.
document.addEventListener("click", (event) => {
  const button = event.target.closest("#profile");
  if (button) profile(button);
});

async function profile(button) {
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
      const profile = results[index];
      for (const [value, isCount] of [[profile.nulls, true], [profile.values, true], [profile.least, false], [profile.most, false]]) {
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
}

function showPartitions() {
  const partitions = document.getElementById("partition-rows");
  if (!partitions) return;
  const columns = partitions.dataset.columns.split(",").filter((name) => document.querySelector(`tr[data-column="${CSS.escape(name)}"]`));
  if (columns.length) {
    const list = columns.map(quoted).join(", ");
    query(`select ${list}, count(*) as rows from ${named} group by ${list} order by ${list}`, 500)
      .then((result) => partitions.replaceChildren(rowsTable(result.columns, result.rows, "Partitions")))
      .catch((error) => partitions.replaceChildren(message(`${error.message}\n${error.hint ?? ""}`, "error")));
  } else partitions.replaceChildren(message("They are parts of a column's values: see the files in lake health --deep."));
}

showPartitions();
if (facts.tree) showTree(document.getElementById("tree"), facts.tree, table, branch);
showRows();
