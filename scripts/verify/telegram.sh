#!/bin/sh
# Drives a login hand-off over the Bot API of another project, which knows no
# photos. Needs Node and npm.
#   scripts/verify/telegram.sh [program]
set -eu

program=$(realpath "${1:-bin/tapin}")
cd "$(dirname "$0")/telegram"
npm install --no-package-lock --no-audit --no-fund --silent
home=$(mktemp -d)
trap '"$program" --home "$home" down >/dev/null 2>&1 || true; rm -rf "$home"' EXIT
node verify.mjs "$program" "$home"
