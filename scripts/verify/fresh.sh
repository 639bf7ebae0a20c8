#!/bin/sh
# Shows tapin to a machine that has never seen it. As a new user with an empty
# home, and a PATH without any browser, it goes from a clone to the first
# hand-off and prints how long that took and how many questions were asked.
# Then it goes where beginners get stuck: no network, no keychain, no display, a
# taken port, a full disk, broken settings, a home that cannot be written to, no
# browser to be had. Each must say code, sentence and hint, and leave nothing
# half done.
#
#   fresh.sh          everything; builds from nothing, which takes minutes
#   fresh.sh stuck    only the places where beginners get stuck, with bin/tapin
#
# Needs root, for a user of its own and for small disks. The package manager is
# a stand-in: it "installs" the Chromium that this machine has.
set -eu

cd "$(dirname "$0")/../.."
repo=$PWD
if [ "$(id -u)" != 0 ]; then
	echo "fresh: this needs root, to make a user and mount small disks; run it in a container" >&2
	exit 1
fi
# A namespace of its own: what is mounted here is gone with it.
if [ -z "${TAPIN_FRESH_INSIDE:-}" ]; then
	TAPIN_FRESH_INSIDE=1 exec unshare -m --propagation private "$0" "$@"
fi
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome-stable || command -v google-chrome) || {
	echo "fresh: there is no browser for the stand-in to install; run make setup first" >&2
	exit 1
}

user=tapin-fresh-$$
work=$(mktemp -d /tmp/tapin-fresh.XXXXXX)
chmod 755 "$work"
useradd --home-dir "$work/user" --create-home --shell /bin/sh "$user"
cleanup() {
	set +e
	# Only processes of the user that was made here.
	for p in /proc/[0-9]*; do
		[ "$(stat -c %U "$p" 2>/dev/null)" = "$user" ] && kill -9 "${p#/proc/}" 2>/dev/null
	done
	for m in "$work"/disk-*; do [ ! -d "$m" ] || umount "$m" 2>/dev/null; done
	chmod -R u+w "$work" 2>/dev/null # module caches are read-only
	rm -rf "$work"
	userdel "$user" 2>/dev/null
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# The programs of this machine, but for browsers and whatever could install one.
path=$work/bin
mkdir "$path"
for folder in /usr/local/bin /usr/bin /bin /usr/sbin /sbin "$(dirname "$(command -v go)")"; do
	for program in "$folder"/*; do
		name=${program##*/}
		case $name in
		chrom* | google-chrome* | microsoft-edge* | apt-get | dnf | pacman | brew | sudo | '*') continue ;;
		esac
		[ -e "$path/$name" ] || ln -s "$program" "$path/$name"
	done
done

# The stand-ins. sudo runs what it is given; apt-get knows one package.
cat >"$work/sudo" <<'STANDIN'
#!/bin/sh
[ "$1" = -n ] && shift
exec "$@"
STANDIN
cat >"$work/apt-get" <<STANDIN
#!/bin/sh
echo "apt-get \$*" >>"$work/installed"
case " \$* " in *" install "*" chromium "*) ln -sf "$chromium" "$path/chromium" ;; esac
STANDIN
chmod 755 "$work/sudo" "$work/apt-get"
: >"$work/installed"
chmod 666 "$work/installed"
chmod 777 "$path"
manager() { # manager yes|no: whether there is a package manager
	rm -f "$path/sudo" "$path/apt-get" "$path/chromium"
	if [ "$1" = yes ]; then ln -s "$work/sudo" "$path/sudo" && ln -s "$work/apt-get" "$path/apt-get"; fi
}

# as_user runs a command with nothing of this environment.
home=$work/user
as_user() {
	setpriv --reuid "$user" --regid "$user" --clear-groups \
		env -i "HOME=$home" "PATH=$path" TERM=xterm LANG=C.UTF-8 "$@"
}

# begin begins a session with an empty page, by HTTP as an agent begins one;
# there may be no network to open a real page from.
begin='curl -sS --fail-with-body -H "Authorization: Bearer $(cat "$HOME/.tapin/agent.token")" "http://$(cat "$HOME/.tapin/control.addr")/session/start" -d'

held=0
ok() {
	held=$((held + 1))
	printf '  ✓ %s\n' "$*"
}
lie() {
	printf '  ✗ %s\n' "$1" >&2
	shift
	for f in "$@"; do sed 's/^/      /' "$f" >&2; done
	exit 1
}
title() { printf '\n%s\n' "$*"; }

# refused COMMAND… must fail, with code, sentence and hint, and say CODE.
refused() {
	code=$1
	shift
	if as_user "$@" >"$work/out" 2>"$work/err"; then lie "$* went through" "$work/out"; fi
	grep -q "\[$code\]" "$work/err" || lie "$* does not say $code" "$work/out" "$work/err"
	grep -q '^tapin: .\{12\}' "$work/err" || lie "$* says no sentence" "$work/err"
	grep -q '^hint:  .\{8\}' "$work/err" || lie "$* gives no hint" "$work/err"
	grep -E '^(tapin|hint):' "$work/err" | cut -c1-150 | sed 's/^/      /'
}

# works COMMAND… must go through.
works() {
	as_user "$@" >"$work/out" 2>"$work/err" || lie "$* failed" "$work/out" "$work/err"
}

# nothing_left: no process of the user, no half-written file in the home.
nothing_left() {
	i=0
	while left=$(pgrep -u "$user" -l || true) && [ -n "$left" ]; do
		i=$((i + 1))
		[ "$i" -lt 100 ] || { echo "$left" >"$work/left"; lie 'processes are left' "$work/left"; }
		sleep 0.1
	done
	[ ! -d "$home/.tapin" ] || find "$home/.tapin" \( -name '*.tmp-*' -o -path '*/run/*' \) >"$work/left" 2>/dev/null || true
	if [ -s "$work/left" ]; then lie 'files are left half written' "$work/left"; fi
}

# place NAME: an empty home of its own for the next case.
place() {
	home=$work/home-$1
	mkdir "$home"
	chown "$user:" "$home"
	: >"$work/left"
}

from_clone() {
	title 'From a clone to the first hand-off, as a new user without a browser'
	manager yes
	git clone -q --bare --no-hardlinks "$repo" "$work/repo.git" # one that the user may read
	chown -R "$user:" "$work/repo.git"
	began=$(date +%s)
	as_user git clone -q --no-hardlinks "$work/repo.git" "$home/tapin" 2>"$work/err" || lie 'the clone failed' "$work/err"
	cloned=$(date +%s)
	# A terminal, with somebody who answers nothing.
	mkfifo "$work/keys"
	chmod 666 "$work/keys"
	as_user script -qefc "make -C $home/tapin up VERSION=fresh" /dev/null <"$work/keys" >"$work/screen" 2>&1 &
	up=$!
	exec 3>"$work/keys"
	waited=0
	until grep -q 'Ctrl-C ends tapin' "$work/screen"; do
		kill -0 "$up" 2>/dev/null || lie 'make up ended' "$work/screen"
		waited=$((waited + 1))
		[ "$waited" -lt 1800 ] || lie 'make up did not become ready within half an hour' "$work/screen"
		sleep 1
	done
	ready=$(date +%s)
	grep -q 'install .*chromium' "$work/installed" || lie 'no browser was installed' "$work/screen"
	cd "$home/tapin"
	works sh -c "$begin '{\"screenshot\":false}'"
	works bin/tapin handoff start login 'Please log in'
	handed=$(date +%s)
	works bin/tapin handoff status
	grep -q 'a person has the wheel' "$work/out" || lie 'nobody has the wheel' "$work/out"
	works bin/tapin handoff finish
	works bin/tapin down
	exec 3>&-
	wait "$up" || true
	cd "$repo"
	nothing_left
	questions=$(grep -c -E '\[[yY]/[nN]\]|\? *$|[Pp]assword( for|:)' "$work/screen" || true)
	ok "the browser was installed by: $(grep install "$work/installed" | head -n 1)"
	ok "clone $((cloned - began)) s, make up until ready $((ready - cloned)) s, open and hand over $((handed - ready)) s"
	ok "together $((handed - began)) s, $questions questions; what was typed: git clone, make up, a session, handoff start"
}

get_stuck() {
	install -m 755 "$repo/bin/tapin" "$path/tapin"
	ln -sf "$chromium" "$path/chromium"

	title 'No browser, and nothing to install one with'
	place bare
	manager no
	works tapin setup --json
	grep -q '"name":"browser","state":"left"' "$work/out" || lie 'setup does not say that a browser is missing' "$work/out"
	if as_user tapin doctor --fix --yes >"$work/out" 2>&1; then lie 'the doctor finds nothing' "$work/out"; fi
	grep -q '✗ browser' "$work/out" || lie 'the doctor does not name the browser' "$work/out"
	refused SESSION_CREATE_FAILED tapin up --background
	works tapin down
	nothing_left
	ok 'setup, doctor and up name it, and how to get one'
	manager yes
	works tapin doctor --fix --yes
	grep -q 'Installed a browser' "$work/out" || lie 'the doctor did not install one' "$work/out"
	ok 'with a package manager, doctor --fix --yes installs it'

	title 'Offline'
	place offline
	cat >"$work/offline" <<CASE
tapin up --background && $begin '{"screenshot":false}' && tapin handoff start login "Please log in" && tapin handoff finish
tapin open https://example.com
code=\$?
tapin doctor
tapin down
exit \$code
CASE
	unshare -n sh -c 'ip link set lo up && exec setpriv --reuid "$0" --regid "$0" --clear-groups env -i "HOME=$1" "PATH=$2" sh "$3"' \
		"$user" "$home" "$path" "$work/offline" >"$work/out" 2>"$work/err" &&
		lie 'a page was opened without a network' "$work/out"
	grep -q '\[NAVIGATION_FAILED\]' "$work/err" && grep -q '^hint:' "$work/err" || lie 'it is not said what is wrong' "$work/out" "$work/err"
	grep -q 'finished by owner' "$work/out" || lie 'there was no hand-off' "$work/out" "$work/err"
	grep -q '! network' "$work/out" || lie 'the doctor does not name the network' "$work/out"
	grep '^tapin:' "$work/err" | cut -c1-150 | sed 's/^/      /'
	nothing_left
	ok 'tapin starts and hands over; a page says NAVIGATION_FAILED, the doctor says why'

	title 'Without a keychain'
	place keyless
	works tapin doctor
	printf 'hunter2' >"$work/password"
	chmod 644 "$work/password"
	refused FORBIDDEN sh -c "tapin credential set example.com --username me <$work/password"
	works tapin up --background
	works sh -c "$begin '{\"context\":\"first\",\"screenshot\":false}'"
	works tapin stop
	works tapin doctor
	grep -q 'lies in a file' "$work/out" || lie 'the doctor does not say where the key is' "$work/out"
	works tapin down
	nothing_left
	ok 'logins are saved with a key in a file, which the doctor names; a credential is refused with the way out'

	title 'Without a display'
	place blind
	refused SESSION_CREATE_FAILED tapin up --background --set browser.headful=true
	works tapin down
	works tapin up --background
	works tapin down
	nothing_left
	ok 'a browser without a window needs none; one with a window says what it lacks'

	title 'A taken port'
	place first
	works tapin up --background --no-check
	one=$home
	place second
	refused BUSY tapin up --background
	[ ! -e "$home/.tapin/control.addr" ] || lie 'the second one left an address'
	if as_user tapin doctor >"$work/out" 2>&1; then lie 'the doctor finds nothing' "$work/out"; fi
	works tapin doctor --fix --yes
	grep 'Set listen.control' "$work/out" | head -n 1 | sed 's/^/      /'
	works tapin up --background
	works tapin down
	home=$one
	works tapin down
	nothing_left
	ok 'it is refused with the port; doctor --fix moves it; then it starts'

	title 'A full disk'
	for room in 16k 64k 256k 1m; do
		place "full-$room"
		mkdir "$work/disk-$room"
		mount -t tmpfs -o "size=$room,uid=$(id -u "$user"),mode=700" tapin "$work/disk-$room"
		home=$work/disk-$room
		if as_user tapin up --background >"$work/out" 2>"$work/err"; then
			works tapin down
			printf '      %s: enough to start\n' "$room"
			continue
		fi
		grep -q '\[STORAGE_FULL\]' "$work/err" && grep -q '^hint:' "$work/err" || lie "$room does not say STORAGE_FULL" "$work/out" "$work/err"
		printf '      %s: ' "$room"
		grep '^tapin:' "$work/err" | cut -c1-140
		works tapin down
		nothing_left
	done
	ok 'it is said, and tapin down leaves nothing behind'

	title 'Broken settings'
	place broken
	as_user mkdir -m 700 "$home/.tapin"
	as_user sh -c 'printf "# mine\ntunel: cloudflared\nmax_sessions: lots\n" >"$HOME/.tapin/config.yaml"'
	cp "$home/.tapin/config.yaml" "$work/before"
	refused INVALID_REQUEST tapin up --background
	grep -q 'config.yaml:2:1' "$work/err" && grep -q 'config.yaml:3:1' "$work/err" || lie 'the lines are not named' "$work/err"
	refused INVALID_REQUEST tapin setup --yes
	if as_user tapin doctor --fix --yes >"$work/out" 2>&1; then lie 'the doctor finds nothing' "$work/out"; fi
	cmp -s "$work/before" "$home/.tapin/config.yaml" || lie 'the file was changed'
	works env 'EDITOR=sed -i -e s/tunel:.*/lan:\ watch/ -e s/lots/2/' tapin config edit
	works tapin config check
	nothing_left
	ok 'each line is named, the file is left alone, config edit mends it'

	title 'A home that cannot be written to'
	place fixed
	mkdir "$work/disk-ro"
	mount -t tmpfs -o "ro,size=1m,uid=$(id -u "$user"),mode=700" tapin "$work/disk-ro"
	home=$work/disk-ro
	refused FORBIDDEN tapin up --background
	refused FORBIDDEN tapin setup --yes
	refused FORBIDDEN tapin config set lan=watch
	if as_user tapin doctor >"$work/out" 2>&1; then :; fi
	works tapin up --background --home "$work/home-fixed/.tapin"
	works tapin down --home "$work/home-fixed/.tapin"
	nothing_left
	ok 'it is refused, with --home as the way out'
}

[ "${1:-}" = stuck ] || from_clone
[ -x "$repo/bin/tapin" ] || { echo "fresh: there is no bin/tapin; run make build first" >&2; exit 1; }
home=$work/user
get_stuck
printf '\nfresh: %d things shown, no dead end\n' "$held"
