// Rows of a result as an HTML table; for previews of some hundred rows.
const NUMBERS = /^(tinyint|smallint|int|bigint|float|double|decimal.*)$/;

export function cellText(value) {
  if (value === null || value === undefined) return "null";
  return typeof value === "object" ? JSON.stringify(value, longNumber) : String(value);
}
// JSON has no word for a BigInt: it is a number of many digits, where the browser can write one.
const longNumber = (_, value) => (typeof value === "bigint" ? (JSON.rawJSON?.(String(value)) ?? String(value)) : value);

/** A table of rows; a row is an object, or an array in the order of the columns. */
export function rowsTable(columns, rows, caption) {
  const region = document.createElement("div");
  region.className = "scroll";
  region.tabIndex = 0;
  region.setAttribute("role", "region");
  region.setAttribute("aria-label", caption);
  const table = document.createElement("table");
  table.className = "rows";
  const head = table.createTHead().insertRow();
  for (const column of columns) {
    const cell = document.createElement("th");
    cell.scope = "col";
    if (NUMBERS.test(column.type)) cell.className = "num";
    const type = document.createElement("span");
    type.className = "type";
    type.textContent = column.shownType ?? column.type;
    cell.append(column.name, type);
    head.append(cell);
  }
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    columns.forEach((column, position) => {
      const value = Array.isArray(row) ? row[position] : row[column.name];
      const cell = line.insertCell();
      cell.textContent = cellText(value);
      cell.title = cell.textContent.length > 40 ? cell.textContent : "";
      if (NUMBERS.test(column.type)) cell.className = "num";
      if (value === null) cell.classList.add("null");
    });
  }
  region.append(table);
  return region;
}

export function message(text, kind = "empty") {
  const element = document.createElement("div");
  element.className = kind;
  if (kind === "error") element.setAttribute("role", "alert");
  for (const line of text.split("\n").filter(Boolean)) {
    const paragraph = document.createElement("p");
    paragraph.textContent = line;
    element.append(paragraph);
  }
  return element;
}

export const isNumber = (type) => NUMBERS.test(type);

export function sizeText(bytes) {
  if (bytes === null || bytes === undefined) return "";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) {
    bytes /= 1000;
    unit += 1;
  }
  return `${unit ? bytes.toFixed(1) : bytes} ${units[unit]}`;
}
