#!/bin/sh
# Says where the time of a test run went, by what go test -json wrote.
#   slow.sh bin/tests.json
set -eu

# ended prints what a pattern finds in the lines about ends, most seconds first.
ended() { sed -n "s/.*\"Action\":\"[a-z]*\",\"Package\":\"\([^\"]*\)\",$1\"Elapsed\":\([0-9.]*\).*/$2/p" "$3" | sort -rn | head -n 10; }

sed -n 's/.*"Action":"fail","Package":"\([^"]*\)","Test":"\([^"]*\)".*/FAILED \1 \2/p' "$1"
echo "packages, in seconds:"
ended '' '\2 \1' "$1"
echo "tests, in seconds:"
ended '"Test":"\([^"\/]*\)",' '\3 \1 \2' "$1"
