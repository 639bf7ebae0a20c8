#!/bin/sh
# Runs go build and says what it is doing: the first time it fetches modules and
# compiles everything, which takes minutes. At a terminal it is one line that
# changes; elsewhere a line now and then. Says nothing when there is nothing to do.
#   build.sh go build -o bin/tapin ./cmd/tapin
set -eu

go=$1
shift 2 # go build
status=$(mktemp)
trap 'rm -f "$status"' EXIT
lively=
if [ -t 1 ]; then lively=yes; fi

{
	"$go" build -v "$@" 2>&1 || echo $? >"$status"
} | {
	fetched=0 compiled=0 shown=
	while IFS= read -r line; do
		case $line in
		'go: downloading '*)
			fetched=$((fetched + 1)) n=$fetched
			text="fetching ${line#go: downloading }"
			;;
		'' | *' '* | *:* | '#'*)
			# An error of the compiler, or advice.
			[ -z "$shown" ] || printf '\r\033[K'
			shown=
			printf '%s\n' "$line" >&2
			continue
			;;
		*)
			compiled=$((compiled + 1)) n=$compiled
			text="compiling $line"
			;;
		esac
		if [ -n "$lively" ]; then
			printf '\r\033[K  %.60s (%d)' "$text" "$n"
			shown=yes
		elif [ $((n % 100)) = 1 ]; then
			printf '  %s (%d)\n' "$text" "$n"
		fi
	done
	[ -z "$shown" ] || printf '\r\033[K'
}
if [ -s "$status" ]; then exit "$(cat "$status")"; fi
