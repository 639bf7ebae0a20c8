#!/bin/sh
# Runs every fuzz target of the module, one after the other, for the time given.
#   fuzz.sh 30s [package pattern]
set -eu

time=${1:-30s}
pattern=${2:-./...}
targets=0
for pkg in $(go list "$pattern"); do
	dir=$(go list -f '{{.Dir}}' "$pkg")
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$dir"/*_test.go 2>/dev/null); do
		targets=$((targets + 1))
		echo "fuzz: $pkg $target for $time"
		# Minimising an interesting input takes up to a minute each unless
		# bounded, in which nothing new is tried.
		go test "$pkg" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 20x
	done
done
echo "fuzz: $targets targets held"
