// A file is first planned (a dry run), then goes to a new branch: at once where no Spark is needed, else as a job. The review is
// the page of the branch.
import { api, followJob } from "./console.js";
import { message, rowsTable } from "./rows.js";

const TYPES = { csv: "text/csv", json: "application/json", jsonl: "application/x-ndjson", ndjson: "application/x-ndjson", parquet: "application/vnd.apache.parquet", arrow: "application/vnd.apache.arrow.stream" };
const PREVIEW_BYTES = 64 << 10;
const form = document.getElementById("ingest");
const drop = document.getElementById("drop");
const file = document.getElementById("file");
const state = document.getElementById("state");
const problem = document.getElementById("problem");
const planned = document.getElementById("planned");
const outcome = document.getElementById("outcome");
const kind = (name) => name.toLowerCase().split(".").pop();

if (form) {
  for (const name of ["dragover", "dragenter"]) drop.addEventListener(name, (event) => (event.preventDefault(), drop.classList.add("over")));
  for (const name of ["dragleave", "drop"]) drop.addEventListener(name, () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    file.files = event.dataTransfer.files;
    chosen();
  });
  file.addEventListener("change", chosen);
  form.addEventListener("input", forget);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    whileBusy(document.getElementById("plan"), plan);
  });
  document.getElementById("start").addEventListener("click", (event) => whileBusy(event.target, ingest));
}

/** A plan is of the fields as they were. */
function forget() {
  planned.hidden = true;
  problem.replaceChildren();
  outcome.replaceChildren();
}

async function whileBusy(button, work) {
  problem.replaceChildren();
  button.disabled = true;
  try {
    await work();
  } catch (error) {
    problem.replaceChildren(message(`${error.message}\n${error.hint ?? ""}`, "error"));
  } finally {
    state.textContent = "";
    button.disabled = false;
  }
}

async function chosen() {
  const [given] = file.files;
  if (!given) return;
  drop.querySelector("strong").textContent = `${given.name}, ${given.size.toLocaleString("en")} bytes`;
  if (!form.elements.into.value) form.elements.into.placeholder = `crm.${given.name.replace(/\..*$/, "").toLowerCase().replace(/[^a-z0-9_]+/g, "_")}`;
  const preview = document.getElementById("preview");
  preview.replaceChildren();
  if (!["csv", "json", "jsonl", "ndjson"].includes(kind(given.name))) return;
  const text = await given.slice(0, PREVIEW_BYTES).text();
  const block = document.createElement("pre");
  block.textContent = text.split("\n").slice(0, 6).join("\n");
  preview.replaceChildren(block);
}

/** Sends the file with its options and returns the report: at once, or as a job for what needs one. */
async function send(more) {
  const [given] = file.files;
  const { into, key, mode, contract } = form.elements;
  const options = { contract: contract.value, ...(key.value && { key: key.value }), ...(mode.value && { mode: mode.value }), ...more };
  const type = TYPES[kind(given.name)];
  if (type) {
    try {
      const path = `/ingest/${into.value}?${new URLSearchParams(options)}`;
      return await (await api("POST", path, { body: given.slice(0, given.size, type), headers: { "Content-Type": type } })).json();
    } catch (error) {
      if (error.code !== "not_supported") throw error; // it may need Spark, which a job has
    }
  }
  const body = new FormData();
  for (const [name, value] of Object.entries({ into: into.value, ...options })) body.append(name, value);
  body.append("file", given);
  const { job } = await (await api("POST", "/ingest", { body })).json();
  const ended = await followJob(job.id, state, () => {});
  if (ended.state !== "succeeded") throw Object.assign(new Error(ended.error?.message ?? "The ingest did not end."), { hint: ended.error?.hint });
  return ended.result;
}

async function plan() {
  state.textContent = "Reading the file…";
  const branch = form.dataset.branch;
  const report = await send({ dry_run: true, ...(branch && { branch }) });
  const key = form.elements.key.value || (report.mode === "upsert" ? "that of the table" : "none");
  const facts = [`Into ${report.table}, mode ${report.mode}, key: ${key}, contract: ${form.elements.contract.value}.`, `Of ${report.rows_read.toLocaleString("en")} rows: ${counts(report)}.`];
  const isNew = !(await tables(branch)).includes(report.table);
  const changes = isNew ? [`A new table: there is no ${report.table} yet.`] : report.changes.length ? report.changes : ["The columns of the table stay as they are."];
  const again = report.skipped.length ? ["This content is already in the table: it would be skipped."] : [];
  document.getElementById("planned-facts").replaceChildren(message([...facts, ...rejected(report, isNew), ...changes, ...report.notes, ...again].join("\n"), "note"), columnsTable(report));
  planned.hidden = false;
  document.getElementById("start").focus();
}

async function tables(branch) {
  const listed = await (await api("GET", `/tables${branch ? `?${new URLSearchParams({ branch })}` : ""}`)).json();
  return listed.tables.map((table) => table.name);
}

/** What becomes of rejected rows. The plan counts them; the reason of each is in the table that they go to. */
function rejected(report, isNew) {
  if (!report.rejected) return [];
  if (isNew && report.rejected === report.rows_read) return ["No row can be read, so the ingest would fail: compare the number of values in each line with the header."];
  return [`Rejected rows go to ${report.table}__rejected, each with its reason.`];
}

async function ingest() {
  const [given] = file.files;
  const branch = `upload_${new Date().toISOString().replace(/\D/g, "").slice(0, 14)}_${Math.random().toString(36).slice(2, 6)}`;
  state.textContent = "Creating a branch…";
  await api("POST", "/branches", { body: { name: branch, from: form.dataset.branch || "main", message: `ingest of ${given.name}` } });
  let report;
  try {
    state.textContent = "Sending the file…";
    report = await send({ branch });
  } catch (error) {
    await api("DELETE", `/branches/${branch}`).catch(() => {});
    throw error;
  }
  await done(branch, report);
}

const counts = (report) => ["inserted", "updated", "unchanged", "rejected", "superseded"].map((name) => `${(report[name] ?? 0).toLocaleString("en")} ${name}`).join(", ");

function columnsTable(report) {
  const columns = report.columns.map((column) => ({ header: column.header, column: column.name, type: column.type, "": column.new ? "new" : column.missing ? "missing in the file" : "" }));
  return rowsTable(["header", "column", "type", ""].map((name) => ({ name, type: "" })), columns, "Columns as they would be read");
}

/** What the file became, and the way to its review, if there is something to review. */
async function done(branch, report) {
  planned.hidden = true;
  const { changes } = await (await api("GET", `/branches/${branch}/diff`)).json();
  const facts = [`${report.table} on the branch ${branch}: ${counts(report)}.`, ...report.changes, ...report.notes];
  if (!changes.length) {
    await api("DELETE", `/branches/${branch}`).catch(() => {});
    outcome.replaceChildren(message([`Nothing was ingested: ${counts(report)}.`, ...report.notes, "No table changes, so the branch was dropped."].join("\n"), "note"));
    return;
  }
  const link = document.createElement("a");
  link.className = "button primary";
  const table = changes.some((change) => change.table === report.table) ? `?${new URLSearchParams({ table: report.table })}` : "";
  link.href = `/ui/b/${branch}${table}`;
  link.textContent = "Review and publish";
  outcome.replaceChildren(message(facts.join("\n"), "note"), link);
  link.focus();
}
