#!/usr/bin/env bash
# What the tests in a browser need besides Chromium: Playwright in .venv, and axe-core where npm is there.
# Prints the file of axe-core; nothing without npm, and then no page is checked for accessibility.
set -euo pipefail
cd "$(dirname "$0")/.."
.venv/bin/uv pip install --quiet --python .venv/bin/python "playwright==1.65.0" >&2
archive=axe-core-4.14.0.tgz
script=node_modules/.axe/package/axe.min.js
if [ ! -f $script ] && command -v npm > /dev/null; then
    mkdir -p node_modules/.axe
    (cd node_modules/.axe && npm pack --silent axe-core@4.14.0 > /dev/null)
    echo "2277b0a3ef47af9b52497faa3e71598e86e0a0e5e6eb295207a5657ede4709af  node_modules/.axe/$archive" | sha256sum --check --quiet >&2
    tar xzf node_modules/.axe/$archive -C node_modules/.axe
fi
if [ -f $script ]; then echo "$PWD/$script"; fi
