#!/usr/bin/env bash
# Build the vendored libraries of the web console. For maintainers: needs Node and a registry; the result is committed.
set -euo pipefail
cd "$(dirname "$0")"
out=../../src/lakehouse/console/static/vendor
npm install --no-package-lock --no-audit --no-fund --ignore-scripts=false
mkdir -p "$out"
for name in editor grid charts; do
  npx esbuild "$name.js" --bundle --minify --format=esm --target=es2022 --legal-comments=none --outfile="$out/$name.js"
done
node licences.mjs > "$out/LICENCES.txt"
