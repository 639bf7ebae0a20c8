#!/bin/sh
# Holds the MCP door against clients that are not ours. Needs Node and npm.
#   scripts/verify/mcp.sh [program]
set -eu

program=$(realpath "${1:-bin/tapin}")
cd "$(dirname "$0")"
npm install --no-package-lock --no-audit --no-fund --silent
home=$(mktemp -d)
trap '"$program" --home "$home" down >/dev/null 2>&1 || true; rm -rf "$home"' EXIT
node mcp.mjs "$program" "$home"
