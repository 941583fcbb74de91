#!/bin/sh
# Rewrite constraints/: what pyproject.toml asks for, on every platform, with the hashes of its files,
# at the versions pinned so far, or with --upgrade at the newest that are allowed.
set -eu
cd "$(dirname "$0")/.."
venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
"${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check uv

pin() { # NAME REQUIREMENTS [OPTION...]: write constraints/NAME.txt
  output=constraints/$1.txt requirements=$2
  shift 2
  printf '%s\n' "$requirements" | "$venv/bin/uv" pip compile $upgrade --quiet --universal --python-version 3.11 \
    --generate-hashes --no-annotate --no-emit-index-url --custom-compile-command scripts/pin.sh \
    --no-emit-package cbench-client --no-emit-package cbench-server "$@" --output-file "$output" -
}

upgrade=
[ "${1:-}" = "--upgrade" ] && upgrade=--upgrade
pin build "setuptools>=77"
# What `make demo` needs: the plain install, and maths for mini-maths.
pin base "./clients/python
.[math]"
# shellcheck disable=SC2046 # no quotes: two words for each package of base.txt, which dev.txt adds to
pin dev "./clients/python
.[dev]" -c constraints/base.txt $(sed -n 's/^\([^ #]*\)==.*/--no-emit-package \1/p' constraints/base.txt)
# The oldest grpcio-tools we support: stubs refuse a runtime older than their generator.
pin protos "grpcio-tools==1.76.0
setuptools<81"
# Tools in an environment of their own each: `make release`, `make docs-site`, the tests with Inspect AI.
pin release "twine>=6
uv>=0.8
setuptools>=77"
pin docs "mkdocs-material>=9.6"
# The schemas that deploy/ is held to.
pin deploy "check-jsonschema>=0.39
kubernetes-validate>=1.37"
pin inspect "inspect-ai>=0.3.100
duckdb>=1.2"
# For examples/python/embedding_retriever.py and embedding_memory.py, beside what base.txt has.
# shellcheck disable=SC2046
pin embedding "wordllama==0.4.0.post1" -c constraints/base.txt $(sed -n 's/^\([^ #]*\)==.*/--no-emit-package \1/p' constraints/base.txt)
# For --engine ray, whose tests have an environment of their own, beside what base.txt has.
# shellcheck disable=SC2046
pin ray "./clients/python
.[math,ray]" -c constraints/base.txt $(sed -n 's/^\([^ #]*\)==.*/--no-emit-package \1/p' constraints/base.txt)
# What adapters are tried against; wordllama brings an embedder whose weights are in its wheel.
pin adapters "./clients/python
langchain-core
langchain-classic
llama-index-core
mem0ai>=2
mcp
wordllama"
