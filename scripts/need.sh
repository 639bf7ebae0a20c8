#!/bin/sh
# Says in a sentence what this machine lacks to build or test tapin.
#   need.sh go    a Go toolchain that is new enough
#   need.sh cc    a C compiler, which only the race detector needs
#   need.sh node  Node and npm, which only the peers of the benchmark need
set -eu

need_go() {
	want=$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' go.mod)
	if ! command -v go >/dev/null 2>&1; then
		echo "tapin needs Go $want or newer, and there is no go in the PATH. Get it from https://go.dev/dl/." >&2
		exit 1
	fi
	have=$(go env GOVERSION | sed 's/^go//')
	oldest=$(printf '%s\n%s\n' "$want" "$have" | sort -t. -k1,1n -k2,2n | head -n 1)
	if [ "$oldest" != "$want" ] && [ "${have#"$want"}" = "$have" ]; then
		echo "tapin needs Go $want or newer; this is Go $have. Get it from https://go.dev/dl/." >&2
		exit 1
	fi
}

need_cc() {
	cc=$(go env CC)
	# CC may carry arguments; its first word is the program.
	if ! command -v "${cc%% *}" >/dev/null 2>&1; then
		echo "The race detector needs a C compiler, and there is no ${cc%% *}." >&2
		echo "Install one: apt-get install gcc libc6-dev, dnf install gcc, pacman -S gcc, or xcode-select --install." >&2
		echo "tapin itself needs none: make build works without." >&2
		exit 1
	fi
}

need_node() {
	for program in node npm; do
		if ! command -v "$program" >/dev/null 2>&1; then
			echo "The benchmark's peers come from npm, and there is no $program in the PATH. Install Node 20 or newer." >&2
			echo "Without them: go run ./bench -peers=false." >&2
			exit 1
		fi
	done
}

for what in "$@"; do
	case $what in
	go) need_go ;;
	cc) need_cc ;;
	node) need_node ;;
	*) echo "need.sh: nothing is known about $what" >&2; exit 2 ;;
	esac
done
