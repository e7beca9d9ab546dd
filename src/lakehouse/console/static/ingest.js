// A file goes to a new branch: at once where no Spark is needed, else as a job; the review is the page of the branch.
import { api, followJob } from "./console.js";
import { message, rowsTable } from "./rows.js";

const TYPES = { csv: "text/csv", json: "application/json", jsonl: "application/x-ndjson", ndjson: "application/x-ndjson", parquet: "application/vnd.apache.parquet", arrow: "application/vnd.apache.arrow.stream" };
const PREVIEW_BYTES = 64 << 10;
const form = document.getElementById("ingest");
const drop = document.getElementById("drop");
const file = document.getElementById("file");
const state = document.getElementById("state");
const problem = document.getElementById("problem");
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
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ingest();
  });
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

async function ingest() {
  const [given] = file.files;
  const { into, key, mode, contract } = form.elements;
  const branch = `upload_${new Date().toISOString().replace(/\D/g, "").slice(0, 14)}_${Math.random().toString(36).slice(2, 6)}`;
  const button = document.getElementById("start");
  problem.replaceChildren();
  button.disabled = true;
  let isCreated = false;
  try {
    state.textContent = "Creating a branch…";
    await api("POST", "/branches", { body: { name: branch, message: `ingest of ${given.name}` } });
    isCreated = true;
    state.textContent = "Sending the file…";
    const type = TYPES[kind(given.name)];
    if (type) {
      const query = new URLSearchParams({ branch, contract: contract.value, ...(key.value && { key: key.value }), ...(mode.value && { mode: mode.value }) });
      const report = await (await api("POST", `/ingest/${into.value}?${query}`, { body: given.slice(0, given.size, type), headers: { "Content-Type": type } })).json();
      done(branch, report);
    } else {
      const body = new FormData();
      for (const [name, value] of Object.entries({ into: into.value, branch, contract: contract.value, key: key.value, mode: mode.value })) if (value) body.append(name, value);
      body.append("file", given);
      const { job } = await (await api("POST", "/ingest", { body })).json();
      const ended = await followJob(job.id, button, (finished) => done(branch, finished.result ?? {}));
      if (ended.state !== "succeeded") throw new Error(ended.error?.message ?? "The ingest did not end.");
    }
  } catch (error) {
    state.textContent = "";
    problem.replaceChildren(message(`${error.message}\n${error.hint ?? ""}`, "error"));
    if (isCreated) await api("DELETE", `/branches/${branch}`).catch(() => {});
  } finally {
    button.disabled = false;
  }
}

/** What the file became, and the way to its review. */
function done(branch, report) {
  state.textContent = "";
  const counts = ["rows_read", "inserted", "updated", "unchanged", "rejected"].map((name) => `${(report[name] ?? 0).toLocaleString("en")} ${name.replace("_", " ")}`).join(" · ");
  const note = message([`${report.table}: ${counts}`, ...(report.changes ?? []), ...(report.notes ?? [])].join("\n"), "note");
  const link = document.createElement("a");
  link.className = "button primary";
  link.href = `/ui/b/${branch}?table=${encodeURIComponent(report.table)}`;
  link.textContent = "Review and publish";
  const columns = (report.columns ?? []).map((column) => ({ column: column.name, header: column.header, type: column.type }));
  const shape = ["column", "header", "type"].map((name) => ({ name, type: "string" }));
  problem.replaceChildren(note, ...(columns.length ? [rowsTable(shape, columns, "Inferred columns")] : []), link);
  link.focus();
}
