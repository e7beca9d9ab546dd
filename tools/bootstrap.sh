#!/usr/bin/env bash
# Create .venv with Python 3.11 and uv. `make setup` runs it in the checkout.
# Where this machine has no Python 3.11, uv fetches one; a Python of any other version is enough to fetch uv.
# PYTHON names the interpreter to use (default: python3.11, else python3).
set -euo pipefail

version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || true; }

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

# What to do where Python 3.11 can be neither found nor fetched.
fail_without_python() {
  rm -rf .venv
  fail "$1" \
    'Do one of these, then run `make setup` again:' \
    '  - install Python 3.11: `apt install python3.11 python3.11-venv`, `dnf install python3.11` or `brew install python@3.11`' \
    '  - name a Python 3.11 that is elsewhere: `make setup PYTHON=/path/to/python3.11`' \
    "  - $2"
}

if [ -e .venv/bin/python ]; then
  found=$(version_of .venv/bin/python)
  [ "$found" = 3.11 ] || fail ".venv has Python ${found:-that does not start}; lakehouse needs 3.11. Remove .venv and try again: make clean setup"
  [ -x .venv/bin/uv ] || .venv/bin/python -m pip install --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
  exit 0
fi

if [ -n "${PYTHON:-}" ] && [ "$(version_of "$PYTHON")" != 3.11 ]; then
  found=$(version_of "$PYTHON")
  fail "lakehouse needs Python 3.11; PYTHON=$PYTHON is ${found:-not a Python}. Leave PYTHON out to let uv fetch Python 3.11."
fi

other= # any Python at all
for python in ${PYTHON:-python3.11 python3 python}; do
  found=$(version_of "$python")
  if [ "$found" = 3.11 ]; then
    "$python" -m venv .venv || fail_without_python "$python -m venv failed, as it does on Debian and Ubuntu without the package python3.11-venv." \
      'let uv make the environment: `pip install uv && uv venv --python 3.11 .venv`'
    .venv/bin/python -m pip install --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
    exit 0
  fi
  if [ -n "$found" ] && [ -z "$other" ]; then other=$python; fi
done

here="This machine has no Python 3.11${other:+ ($other is $(version_of "$other"))}"
uv=$(command -v uv || true)
if [ -z "$uv" ]; then
  [ -n "$other" ] || fail_without_python "$here, nor another Python to fetch it with." 'install uv, which fetches Python 3.11'
  echo "$here: fetching uv (20 MB), which will fetch Python 3.11 (30 MB)."
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  if ! "$other" -m venv "$scratch/venv" \
    || ! "$scratch/venv/bin/python" -m pip install --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt; then
    fail_without_python "$here, and uv, which would fetch it, could not be installed; the reason is above." \
      'let pip reach a package index: set PIP_INDEX_URL, or HTTPS_PROXY'
  fi
  uv=$scratch/venv/bin/uv
fi
echo "$here: uv makes .venv with a Python 3.11 of its own."
"$uv" venv --python 3.11 .venv || fail_without_python "$here, and uv could not fetch it; the reason is above." \
  'let uv reach a mirror: set UV_PYTHON_INSTALL_MIRROR, or HTTPS_PROXY'
cp "$uv" .venv/bin/uv # until the locked one takes its place
