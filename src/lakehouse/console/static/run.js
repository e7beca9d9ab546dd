// The log of a run, read once the page is shown: the service searches megabytes of Spark's log for it.
import { api } from "./console.js";
import { message } from "./rows.js";

const MOST_LINES = 300;
const place = document.getElementById("log-lines");

/** The lines as a table; those of an error or a warning stand out. */
function linesTable(lines) {
  const region = document.createElement("div");
  region.className = "scroll";
  region.tabIndex = 0;
  region.setAttribute("role", "region");
  region.setAttribute("aria-label", "Log of the run");
  const table = document.createElement("table");
  table.className = "lines";
  const head = table.createTHead().insertRow();
  for (const title of ["When", "From", "Level", "Line"]) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = title;
    head.append(cell);
  }
  const body = table.createTBody();
  for (const line of lines) {
    const row = body.insertRow();
    row.className = line.level;
    const at = new Date(line.at).toISOString().slice(0, 19).replace("T", " ");
    for (const text of [at, line.source, line.level, line.text]) row.insertCell().textContent = text;
    row.lastChild.className = "wrap";
  }
  region.append(table);
  return region;
}

try {
  const { lines } = await (await api("GET", place.dataset.log)).json();
  place.replaceChildren(lines.length ? linesTable(lines.slice(-MOST_LINES)) : message("Nothing was logged."));
} catch (error) {
  place.replaceChildren(message([error.message, error.hint].filter(Boolean).join("\n"), "error"));
} finally {
  place.removeAttribute("aria-busy");
}
