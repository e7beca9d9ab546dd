// Maintenance: first a dry run, whose plan is shown, then the same for real.
import { api, failed, followJob, toast } from "./console.js";
import { message, rowsTable } from "./rows.js";

const COLUMNS = ["table", "action", "state", "detail", "files_before", "files_after", "snapshots"].map((name) => ({ name, type: /files|snapshots/.test(name) ? "bigint" : "string" }));
const section = document.getElementById("plan");
const maintain = document.getElementById("maintain");
let tables = [];

async function start(dryRun, button) {
  button.disabled = true;
  try {
    const { job } = await (await api("POST", "/maintain", { body: { tables, dry_run: dryRun } })).json();
    await followJob(job.id, button, (ended) => show(ended.result, dryRun));
  } catch (error) {
    failed(error);
  } finally {
    button.disabled = false;
  }
}

function show(result, isPlan) {
  const actions = result.actions ?? [];
  const planned = actions.filter((action) => action.state === "planned" || action.state === "done");
  section.hidden = false;
  document.getElementById("plan-title").textContent = isPlan ? "Plan: nothing has been changed yet" : "Done";
  document.getElementById("plan-state").textContent = `${planned.length} of ${actions.length} steps ${isPlan ? "would change something" : "changed something"}`;
  document.getElementById("plan-actions").replaceChildren(actions.length ? rowsTable(COLUMNS, actions, "Steps of maintenance") : message("Nothing to do."));
  maintain.hidden = !isPlan || !planned.length;
  section.scrollIntoView({ block: "nearest" });
  if (!isPlan) toast("Maintained.");
}

for (const button of document.querySelectorAll("[data-plan]")) {
  button.addEventListener("click", () => {
    tables = button.dataset.plan ? [button.dataset.plan] : [];
    start(true, button);
  });
}
maintain?.addEventListener("click", () => start(false, maintain));
