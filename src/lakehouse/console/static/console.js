// What every page does: theme, palette, shortcuts, changes through the API with the session's CSRF token.
const csrf = document.querySelector('meta[name="csrf"]').content;

/** A request to the service; a failure throws an Error with the service's message and hint. */
export async function api(method, path, { body, headers = {}, signal } = {}) {
  const sent = { "X-CSRF-Token": csrf, ...headers };
  if (body !== undefined && !(body instanceof FormData) && !(body instanceof Blob)) {
    sent["Content-Type"] = "application/json";
    body = JSON.stringify(body);
  }
  const answer = await fetch(path, { method, headers: sent, body, signal });
  if (answer.ok) return answer;
  if (answer.status === 401) location.assign(`/ui/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`);
  const failure = await answer.json().catch(() => ({ message: `The service answered ${answer.status}.`, hint: "" }));
  throw Object.assign(new Error(failure.message), { hint: failure.hint, code: failure.error, facts: failure });
}

// A number of more digits than a double holds: 9,007,199,254,740,993 would be read as the even number before it.
const NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;
const isLong = (text) => /^-?\d{16,}$/.test(text);
const knowsSource = JSON.parse("1", (_, value, context) => context?.source === "1");

/** Parses JSON; integers that a double does not hold are BigInt, or text in a browser that does not show the source of a value. */
export function parseExactly(text) {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  if (!knowsSource) return JSON.parse(text.replace(NUMBER, (part) => (isLong(part) ? `"${part}"` : part)));
  return JSON.parse(text, (_, value, { source }) => (typeof value === "number" && !Number.isSafeInteger(value) && isLong(source) ? BigInt(source) : value));
}

/** The JSON of an answer that has values of a table. */
export const exactJson = async (answer) => parseExactly(await answer.text());

export function toast(text, isBad = false) {
  const element = document.createElement("div");
  element.className = isBad ? "toast bad" : "toast";
  element.textContent = text;
  document.getElementById("toasts")?.append(element);
  setTimeout(() => element.remove(), isBad ? 12000 : 4000);
}

export const failed = (error) => {
  if (error.name !== "AbortError") toast([error.message, error.hint].filter(Boolean).join(" "), true);
};

export function confirmed(title, text, yes) {
  const dialog = document.getElementById("confirm");
  document.getElementById("confirm-title").textContent = title;
  document.getElementById("confirm-text").textContent = text;
  document.getElementById("confirm-yes").textContent = yes;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}

// ---- changes: <button data-send="POST /path" data-body='{}' data-confirm="…"> ---------------------------------------
async function send(button) {
  const [method, path] = button.dataset.send.split(" ");
  if (button.dataset.confirm && !(await confirmed(button.dataset.title ?? button.textContent.trim(), button.dataset.confirm, button.textContent.trim()))) return;
  button.disabled = true;
  try {
    const body = button.dataset.body ? JSON.parse(button.dataset.body) : method === "POST" ? {} : undefined;
    const answer = await api(method, path, { body });
    const facts = answer.status === 204 ? {} : await answer.json();
    toast(button.dataset.done ?? "Done.");
    if (facts.job) followJob(facts.job.id, button);
    else if (button.dataset.next) location.assign(button.dataset.next);
    else location.reload();
  } catch (error) {
    failed(error);
    button.disabled = false;
  }
}

/** Shows the progress of a job beside an element, and loads the page again when it has ended. */
export async function followJob(id, element, ended = () => location.reload()) {
  const label = document.createElement("span");
  label.className = "muted";
  label.setAttribute("role", "status");
  element.after(label);
  for (;;) {
    const job = await (await api("GET", `/jobs/${id}?wait=20`)).json();
    label.textContent = ` ${job.state}${job.progress ? `: ${job.progress}` : ""}`;
    if (["succeeded", "failed", "canceled"].includes(job.state)) {
      if (job.state === "failed") failed(Object.assign(new Error(job.error?.message ?? "The job failed."), { hint: job.error?.hint }));
      if (job.state !== "failed") ended(job);
      else if ("disabled" in element) element.disabled = false;
      return job;
    }
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-send]");
  if (button) send(button);
});

// ---- running work: progress without a reload -------------------------------------------------------------------------
for (const item of document.querySelectorAll("[data-job]")) {
  if (item.dataset.kind !== "query") watch(item).catch(() => {});
}
async function watch(item) {
  for (;;) {
    const job = await (await api("GET", `/jobs/${item.dataset.job}?wait=20`)).json();
    item.querySelector("[data-progress]").textContent = job.progress || job.state;
    if (["succeeded", "failed", "canceled"].includes(job.state)) return location.reload();
  }
}

// ---- forms whose fields are the address ------------------------------------------------------------------------------
for (const form of document.querySelectorAll("form[data-auto]")) {
  form.addEventListener("change", () => {
    const address = new URL(location.href);
    for (const [name, value] of new FormData(form)) {
      if (value) address.searchParams.set(name, value);
      else address.searchParams.delete(name);
    }
    // A page of a list, and moments of a table: another branch may not have them.
    for (const name of ["page_token", "at", "vs"]) address.searchParams.delete(name);
    location.assign(address);
  });
}

// ---- theme, sign-out -------------------------------------------------------------------------------------------------
document.getElementById("theme")?.addEventListener("click", () => {
  const isDark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  const next = isDark ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  document.cookie = `lake-theme=${next}; path=/ui; max-age=31536000; samesite=strict`; // the service writes it into the page
  document.dispatchEvent(new Event("themechange"));
});
document.getElementById("sign-out")?.addEventListener("click", () => api("POST", "/ui/sign-out", { body: {} }).then(() => location.assign("/ui/sign-in"), failed));

// A link from another site arrives without the cookie, which this page, being of this site, has.
const signIn = document.querySelector("[data-signed-in-check]");
if (signIn) fetch(location.href, { method: "HEAD", redirect: "manual" }).then((answer) => answer.type === "opaqueredirect" && location.replace(signIn.dataset.next));

// On a phone the navigation is one line, of which the page's own entry may lie outside.
document.querySelector(".side nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });

// ---- palette ---------------------------------------------------------------------------------------------------------
const palette = document.getElementById("palette");
let places = null;
async function openPalette() {
  palette.showModal();
  const input = document.getElementById("palette-input");
  input.value = "";
  if (!places) {
    places = [...document.querySelectorAll(".side nav a")].map((link) => ({ name: link.textContent, kind: "page", href: link.getAttribute("href") }));
    const branch = new URLSearchParams(location.search).get("branch") ?? "";
    const query = branch ? `?branch=${encodeURIComponent(branch)}` : "";
    const [tables, branches] = await Promise.all([
      api("GET", `/tables${query}`).then((answer) => answer.json(), () => ({ tables: [] })),
      api("GET", "/branches").then((answer) => answer.json(), () => ({ branches: [] })),
    ]);
    places.push(...tables.tables.map((table) => ({ name: table.name, kind: "table", href: `/ui/t/${table.name}${query}` })));
    places.push(...branches.branches.map((ref) => ({ name: ref.name, kind: "branch", href: `/ui/b/${ref.name}` })));
  }
  showPlaces(input.value);
}
function showPlaces(text) {
  const list = document.getElementById("palette-list");
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = places.filter((place) => words.every((word) => place.name.toLowerCase().includes(word))).slice(0, 40);
  list.replaceChildren(
    ...matches.map((place, position) => {
      const item = document.createElement("li");
      item.id = `place-${position}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", String(position === 0));
      item.dataset.href = place.href;
      const kind = document.createElement("span");
      kind.className = "muted";
      kind.textContent = place.kind;
      item.append(place.name, kind);
      item.addEventListener("click", () => location.assign(place.href));
      return item;
    }),
  );
  document.getElementById("palette-input").setAttribute("aria-activedescendant", matches.length ? "place-0" : "");
}
function movePlace(step) {
  const items = [...document.querySelectorAll("#palette-list li")];
  if (!items.length) return;
  const now = items.findIndex((item) => item.getAttribute("aria-selected") === "true");
  const next = (now + step + items.length) % items.length;
  items[now]?.setAttribute("aria-selected", "false");
  items[next].setAttribute("aria-selected", "true");
  items[next].scrollIntoView({ block: "nearest" });
  document.getElementById("palette-input").setAttribute("aria-activedescendant", items[next].id);
}
if (palette) {
  document.getElementById("palette-open").addEventListener("click", openPalette);
  document.getElementById("keys-open").addEventListener("click", () => document.getElementById("keys").showModal());
  const input = document.getElementById("palette-input");
  input.addEventListener("input", () => showPlaces(input.value));
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      movePlace(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter") {
      const href = document.querySelector('#palette-list li[aria-selected="true"]')?.dataset.href;
      if (href) location.assign(href);
    }
  });
}

// ---- shortcuts -------------------------------------------------------------------------------------------------------
let afterG = 0;
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && palette) {
    event.preventDefault();
    if (!palette.open) openPalette();
    return;
  }
  const isTyping = event.target.closest?.("input, textarea, select, [contenteditable], .cm-editor");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "?") document.getElementById("keys")?.showModal();
  else if (event.key === "g") afterG = Date.now();
  else if (Date.now() - afterG < 1200) {
    afterG = 0;
    document.querySelector(`.side nav a[data-go="${CSS.escape(event.key)}"]`)?.click();
  } else if (event.key === "[") document.querySelector("[data-earlier]")?.click();
  else if (event.key === "]") document.querySelector("[data-later]")?.click();
});

// ---- forms that are requests: <form data-json="POST /path" data-next="/ui/b/{name}"> ---------------------------------
for (const form of document.querySelectorAll("form[data-json]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = event.submitter;
    const [method, path] = (button?.dataset.as ?? form.dataset.json).split(" ");
    const body = {};
    for (const field of form.elements) {
      if (!field.name) continue;
      if (field.type === "checkbox") body[field.name] = field.checked;
      else if ("list" in field.dataset) body[field.name] = field.value.split(",").map((part) => part.trim()).filter(Boolean);
      else if (field.value) body[field.name] = field.value;
    }
    if (button) button.disabled = true;
    try {
      const facts = await (await api(method, path, { body })).json();
      const next = (button?.dataset.next ?? form.dataset.next).replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(facts[name]));
      location.assign(next);
    } catch (error) {
      failed(error);
      if (button) button.disabled = false;
    }
  });
}
document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-dialog]");
  if (opener) document.getElementById(opener.dataset.dialog).showModal();
  if (event.target.closest("[data-close]")) event.target.closest("dialog").close();
});
