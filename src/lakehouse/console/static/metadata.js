// The metadata of a table as a tree: one click opens a layer, which is fetched then; each file has its path and content.
import { api } from "./console.js";
import { message, sizeText } from "./rows.js";

const MOST = 200;
const SIZES = new Set(["bytes"]);
const HIDDEN = new Set(["changes", "bounds", "nulls", "columns_left_out", "is_current", "operation", "content", "status"]);
const BELOW = { metadata: "snapshots", timeline: "instants", "manifest-list": "manifests", manifest: "files", instant: "file slices" };

function element(name, options = {}, ...children) {
  const made = Object.assign(document.createElement(name), options);
  made.append(...children);
  return made;
}

function summaryWords(node) {
  const { facts } = node;
  const rows = (facts.rows ?? 0).toLocaleString("en");
  switch (node.kind) {
    case "metadata": return `${facts.snapshots.toLocaleString("en")} snapshots, format version ${facts.format_version}`;
    case "timeline": return `${facts.instants.toLocaleString("en")} instants`;
    case "schema": return `${facts.columns} columns${facts.is_current ? ", now" : ""}`;
    case "snapshot":
    case "instant": return `${facts.at.slice(0, 19).replace("T", " ")} UTC · ${facts.operation} · ${rows} rows${facts.is_current ? " · now" : ""}`;
    case "manifest-list": return `${facts.manifests} manifests`;
    case "manifest": return `${facts.content} · ${facts.files_added ?? 0} added, ${facts.files_existing ?? 0} existing, ${facts.files_deleted ?? 0} deleted`;
    case "history": return "";
    default: return [facts.status, facts.rows === undefined ? "" : `${rows} rows`, sizeText(facts.bytes), facts.partition].filter(Boolean).join(" · ");
  }
}

function factText(name, value) {
  if (SIZES.has(name)) return sizeText(value);
  if (Array.isArray(value)) return value.join(", ");
  return typeof value === "number" ? value.toLocaleString("en") : String(value);
}

function factsList(node) {
  const list = element("dl", { className: "pairs small" });
  for (const [name, value] of Object.entries(node.facts)) {
    if (HIDDEN.has(name) || value === null || value === "" || (Array.isArray(value) && !value.length)) continue;
    list.append(element("div", {}, element("dt", { textContent: name.replaceAll("_", " ") }), element("dd", { textContent: factText(name, value) })));
  }
  return list;
}

function boundsTable(node) {
  const { bounds = {}, nulls = {}, columns_left_out: more } = node.facts;
  const columns = [...new Set([...Object.keys(bounds), ...Object.keys(nulls)])];
  if (!columns.length) return [];
  const region = element("div", { className: "scroll", tabIndex: 0 });
  region.setAttribute("role", "region");
  region.setAttribute("aria-label", `Bounds of the columns in ${node.name}`);
  const table = element("table");
  const head = table.createTHead().insertRow();
  for (const name of ["Column", "Least", "Most", "Nulls"]) head.append(element("th", { scope: "col", textContent: name }));
  const body = table.createTBody();
  for (const name of columns) {
    const line = body.insertRow();
    const [least, most] = bounds[name] ?? [null, null];
    line.append(element("th", { scope: "row" }, element("code", { textContent: name })));
    for (const value of [least, most, nulls[name] ?? 0]) line.insertCell().textContent = value === null ? "" : String(value);
  }
  region.append(table);
  return more ? [region, element("p", { className: "muted small", textContent: `${more} more columns have bounds.` })] : [region];
}

/** Shows a tree in an element; the root is closed. */
export function showTree(place, root, table, branch) {
  const here = (query) => new URLSearchParams({ ...query, ...(branch && { branch }) });
  const tree = async (query) => (await api("GET", `/tables/${table}/inspect?${here({ limit: String(MOST), ...query })}`)).json();

  /** The nodes below one, of which only the first layer came with the page. */
  async function below(node, context) {
    if (node.kind === "snapshot" && node.left_out) return (await tree({ when: node.name, layer: "manifests" })).children[0];
    if (node.kind === "instant") return (await tree({ when: node.name, layer: "files" })).children[0];
    if (node.kind === "manifest") return (await tree({ when: context.snapshot, manifest: node.path, layer: "files" })).children[0].children[0].children[0];
    return node;
  }

  async function showRaw(node, context, button, pre) {
    button.disabled = true;
    try {
      const query = here({ path: node.path, ...(context.snapshot && { when: context.snapshot }), ...(context.manifest && { manifest: context.manifest }) });
      const file = await (await api("GET", `/tables/${table}/inspect/file?${query}`)).json();
      pre.textContent = file.text;
      if (file.left_out) pre.after(element("p", { className: "muted small", textContent: `Shortened: ${file.left_out.toLocaleString("en")} more characters or records are in the file.` }));
      pre.hidden = false;
      button.hidden = true;
    } catch (error) {
      button.disabled = false;
      button.after(message(`${error.message}\n${error.hint ?? ""}`, "error"));
    }
  }

  function pathLine(node, context) {
    const button = element("button", { type: "button", textContent: "Content" });
    const pre = element("pre", { hidden: true, tabIndex: 0, className: "raw" });
    pre.setAttribute("role", "region");
    pre.setAttribute("aria-label", `Content of ${node.name}`);
    button.setAttribute("aria-label", `Show the content of ${node.name}`);
    button.addEventListener("click", () => showRaw(node, context, button, pre));
    return [element("div", { className: "row small" }, element("code", { textContent: node.path }), button), pre];
  }

  function changes(node) {
    return (node.facts.changes ?? []).map((change) =>
      element("div", { className: "mono", textContent: `${change.change}: ${change.column} ${[change.before, change.after].filter(Boolean).join(" → ")}` }),
    );
  }

  async function open(node, context, body) {
    body.replaceChildren(element("p", { className: "muted", textContent: "Loading…" }));
    try {
      const full = await below(node, context);
      const children = full.children.map((child) => nodeElement(child, contextBelow(node, context)));
      const more = full.left_out && BELOW[node.kind] ? [element("p", { className: "muted small", textContent: `${full.left_out.toLocaleString("en")} more ${BELOW[node.kind]} are not shown: lake inspect ${table} --limit N` })] : [];
      body.replaceChildren(...(node.path ? pathLine(node, context) : []), ...changes(node), factsList(node), ...boundsTable(node), ...children, ...more);
    } catch (error) {
      body.replaceChildren(message(`${error.message}\n${error.hint ?? ""}`, "error"));
    }
  }

  function contextBelow(node, context) {
    if (node.kind === "snapshot" || node.kind === "instant") return { snapshot: node.name };
    return node.kind === "manifest" ? { ...context, manifest: node.path } : context;
  }

  function nodeElement(node, context) {
    const summary = element("summary", {}, element("strong", { textContent: node.kind }), " ", element("code", { textContent: node.name }), " ", element("span", { className: "muted", textContent: summaryWords(node) }));
    const body = element("div", { className: "node" });
    const details = element("details", {}, summary, body);
    details.dataset.kind = node.kind;
    details.addEventListener("toggle", () => details.open && !body.childElementCount && open(node, context, body));
    return details;
  }

  place.replaceChildren(...(root.kind === "history" ? [message("Tables of this format do not show their metadata.")] : [nodeElement(root, {})]));
}
