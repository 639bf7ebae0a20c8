#!/bin/sh
# Shows a hand-off from beginning to end with the real program: a login that a
# person does in the agent's browser, and every other way it can end. Needs what
# `make build` left in bin/, a Chromium, and Go for the site it logs in to. Says
# each step with what it saw, and exits non-zero on the first lie.
set -eu

cd "$(dirname "$0")/../.."
if [ ! -x bin/tapin ]; then
	echo "handoff: there is no bin/tapin; run make build first" >&2
	exit 1
fi
exec "${GO:-go}" run scripts/verify/handoff.go "$PWD/bin/tapin"
