#!/bin/sh
# Makes sure that a Chrome, Chromium or Edge is on this machine, and installs
# Chromium with the system's package manager if there is none. Asks nothing,
# says each step, prints one line and changes nothing when all is there.
set -eu

say() { printf 'setup: %s\n' "$*"; }
fail() {
	printf 'setup: %s\n' "$1" >&2
	shift
	for line in "$@"; do printf '       %s\n' "$line" >&2; done
	exit 1
}

# The names under which Linux distributions and macOS keep the browser.
NAMES='chromium chromium-browser google-chrome-stable google-chrome chrome microsoft-edge-stable microsoft-edge'
APPS='Google Chrome
Chromium
Microsoft Edge'

# find_browser prints the path of a browser, or fails.
find_browser() {
	for name in $NAMES; do
		if command -v "$name" 2>/dev/null; then return 0; fi
	done
	# A newline separates the names, since they have spaces.
	old_ifs=$IFS
	IFS='
'
	for app in $APPS; do
		for folder in /Applications "${HOME:-/nonexistent}/Applications"; do
			if [ -x "$folder/$app.app/Contents/MacOS/$app" ]; then
				IFS=$old_ifs
				printf '%s\n' "$folder/$app.app/Contents/MacOS/$app"
				return 0
			fi
		done
	done
	IFS=$old_ifs
	return 1
}

# as_root runs a command as root, without ever waiting for a password where
# nobody could type one.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null 2>&1; then
		if [ -t 0 ] && [ -z "${CI:-}" ]; then sudo "$@"; else sudo -n "$@"; fi
	else
		fail "installing a browser needs root, and there is no sudo." \
			"As root, run: $*"
	fi
}

by_hand() {
	fail "$1" \
		"Install Chrome, Chromium or Edge by hand and run this again," \
		"or set TAPIN_CHROME to the path of one."
}

install_browser() {
	if command -v apt-get >/dev/null 2>&1; then
		say 'refreshing the package lists (apt-get update)'
		as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq ||
			say 'the package lists could not be refreshed; trying with the old ones'
		say 'installing Chromium (apt-get install chromium)'
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium ||
			as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium-browser ||
			by_hand 'apt-get could not install Chromium.'
	elif command -v dnf >/dev/null 2>&1; then
		say 'installing Chromium (dnf install chromium)'
		as_root dnf install -y -q chromium || by_hand 'dnf could not install Chromium.'
	elif command -v pacman >/dev/null 2>&1; then
		say 'installing Chromium (pacman -S chromium)'
		as_root pacman -Sy --noconfirm --needed chromium || by_hand 'pacman could not install Chromium.'
	elif command -v brew >/dev/null 2>&1; then
		say 'installing Google Chrome (brew install --cask google-chrome)'
		NONINTERACTIVE=1 brew install --quiet --cask google-chrome || by_hand 'brew could not install Google Chrome.'
	else
		by_hand 'there is no browser, and no package manager that this script knows.'
	fi
}

if [ -n "${TAPIN_CHROME:-}" ]; then
	[ -x "$TAPIN_CHROME" ] || fail "TAPIN_CHROME is $TAPIN_CHROME, which cannot be run." \
		"Correct it, or unset it to use the browser of this machine."
	say "browser: $TAPIN_CHROME (TAPIN_CHROME)"
	exit 0
fi
if ! browser=$(find_browser); then
	say 'no Chrome, Chromium or Edge found'
	install_browser
	browser=$(find_browser) || by_hand 'the installation went through, but no browser is to be found.'
fi
say "browser: $browser"
