#!/bin/sh
# Builds what a release would carry, and publishes nothing: for each system the
# program, built twice in two folders with two caches and compared byte by byte; an archive with
# it, LICENSE, README, the change log and what shells and man pages need; the
# modules in each program, their licences, and SHA256SUMS over all of it.
# Everything lies in bin/release afterwards. Fails at the first thing that does not hold.
set -eu

cd "$(dirname "$0")/.."
go=${GO:-go}
version=${VERSION:-$(git describe --tags --always --dirty)}
targets=${TARGETS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}
out=$PWD/bin/release

say() { printf 'release: %s\n' "$*"; }
fail() {
	printf 'release: %s\n' "$*" >&2
	exit 1
}

# The time in archives is that of the commit, so that they come out the same too.
moment=$(git log -1 --format=%ct)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# build FOLDER OS ARCH FILE
build() {
	(cd "$1" && CGO_ENABLED=0 GOOS=$2 GOARCH=$3 GOFLAGS=-buildvcs=false "$go" build -trimpath \
		-ldflags "-s -w -buildid= -X tapin/internal/cli.version=$version" -o "$4" ./cmd/tapin)
}

rm -rf "$out"
mkdir -p "$out"
say "version $version, $("$go" env GOVERSION)"
# The second folder holds what is committed, so that nothing else can be in a release.
mkdir "$work/elsewhere"
git archive HEAD | tar -x -C "$work/elsewhere"
[ -z "$(git status --porcelain)" ] || say 'there are changes that are not committed: the two builds will differ if they matter'

# What is the same for every system.
build . "$("$go" env GOHOSTOS)" "$("$go" env GOHOSTARCH)" "$work/tapin"
mkdir -p "$work/share/completions"
for shell in bash zsh fish; do "$work/tapin" completion $shell >"$work/share/completions/tapin.$shell"; done
"$work/tapin" man --into "$work/share/man1" >/dev/null
"$go" run ./scripts/licenses >"$work/share/THIRD-PARTY-LICENSES.txt"
say "licences of $(grep -c '^=== ' "$work/share/THIRD-PARTY-LICENSES.txt") modules"

for target in $targets; do
	os=${target%/*} arch=${target#*/}
	name=tapin_${version}_${os}_$arch
	began=$(date +%s)
	build . "$os" "$arch" "$work/one"
	# A cache of its own: what the first build left there would prove nothing.
	GOCACHE=$work/cache build "$work/elsewhere" "$os" "$arch" "$work/two"
	if ! cmp "$work/one" "$work/two"; then
		mkdir -p "$out/differ" && cp "$work/one" "$work/two" "$out/differ/"
		ls -l "$out/differ" >&2
		fail "$target: two folders, two programs; both are in bin/release/differ"
	fi
	if LC_ALL=C grep -aqF "$PWD/" "$work/one"; then fail "$target: the program names the folder it was built in"; fi

	mkdir -p "$work/$name"
	cp "$work/one" "$work/$name/tapin"
	cp LICENSE README.md CHANGELOG.md "$work/$name/"
	cp -R "$work/share/." "$work/$name/"
	"$go" version -m "$work/one" | sed "1s|.*|$name|" >"$out/$name.modules.txt"
	find "$work/$name" -exec touch -h -d "@$moment" {} + 2>/dev/null || find "$work/$name" -exec touch -t "$(date -r "$moment" +%Y%m%d%H%M.%S)" {} +
	if tar --version 2>/dev/null | grep -q GNU; then
		tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$moment" -C "$work" -cf "$work/$name.tar" "$name"
	else
		tar -C "$work" -cf "$work/$name.tar" "$name" # the program is the same everywhere; the archive by GNU tar alone
	fi
	gzip -n -9 <"$work/$name.tar" >"$out/$name.tar.gz"
	say "$target: the same bytes from both folders, $(wc -c <"$work/one" | tr -d ' ') bytes, $(($(date +%s) - began)) s"
done

# On this system it can be tried: it must need nothing, and start with nothing.
case "$targets" in *"$("$go" env GOHOSTOS)/$("$go" env GOHOSTARCH)"*)
	if command -v ldd >/dev/null 2>&1 && [ "$("$go" env GOHOSTOS)" = linux ]; then
		ldd "$work/tapin" >/dev/null 2>&1 && fail 'the program is not static'
		say 'the program is static'
	fi
	env -i "$work/tapin" version >"$work/said" || fail 'the program does not start in an empty environment'
	say "in an empty environment: $(head -n 1 "$work/said")"
	;;
esac

cd "$out"
if command -v sha256sum >/dev/null 2>&1; then sha256sum -- * >"$work/sums"; else shasum -a 256 -- * >"$work/sums"; fi
mv "$work/sums" SHA256SUMS
say 'bin/release:'
cat SHA256SUMS
