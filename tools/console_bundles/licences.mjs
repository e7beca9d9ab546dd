// Print the licence of every package in node_modules that may be in a bundle: all but the build tool.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

function packages(folder) {
  return readdirSync(folder)
    .filter((name) => !name.startsWith("."))
    .flatMap((name) => (name.startsWith("@") ? readdirSync(join(folder, name)).map((part) => join(name, part)) : [name]));
}

const folder = "node_modules";
for (const name of packages(folder).sort()) {
  if (name === "esbuild" || name.startsWith("@esbuild")) continue;
  const about = JSON.parse(readFileSync(join(folder, name, "package.json")));
  const file = readdirSync(join(folder, name)).find((entry) => /^licen[cs]e/i.test(entry));
  const text = file && existsSync(join(folder, name, file)) ? readFileSync(join(folder, name, file), "utf8").trim() : "";
  console.log(`${"=".repeat(100)}\n${about.name} ${about.version}: ${about.license}\n${"=".repeat(100)}\n${text}\n`);
}
