#!/bin/sh
# Write constraints.txt anew: what pyproject.toml asks for, at the versions pinned so far,
# or with --upgrade at the newest that it allows.
set -eu
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
keep="-c constraints.txt"
[ "${1:-}" = "--upgrade" ] && keep=""
"${PYTHON:-python3}" -m venv "$fresh"
# shellcheck disable=SC2086 # no quotes: it may be empty
"$fresh/bin/python" -m pip install --quiet --disable-pip-version-check $keep -e clients/python -e '.[dev]'
"$fresh/bin/python" -m pip freeze --exclude-editable | LC_ALL=C sort -f > "$fresh/frozen"
{
  echo "# Every package of .venv, so that today's install is tomorrow's. Remade by: scripts/pin.sh"
  cat "$fresh/frozen"
} > constraints.txt
