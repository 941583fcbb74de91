#!/bin/sh
# Write constraints.txt anew from the newest versions that pyproject.toml allows.
set -eu
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"${PYTHON:-python3}" -m venv "$fresh"
"$fresh/bin/python" -m pip install --quiet -e clients/python -e '.[dev]'
{
  echo "# Every package of .venv, so that today's install is tomorrow's. Remade by: scripts/pin.sh"
  "$fresh/bin/python" -m pip freeze --exclude-editable | LC_ALL=C sort -f
} > constraints.txt
