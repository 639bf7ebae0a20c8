#!/bin/sh
# Makes sure that what only the tests need is on this machine: on Linux a message
# bus and a keychain, for the test of where the keys are kept, and WebKit with its
# driver and a display that nobody sees, for the phone's page. Asks nothing, says
# each step, prints a line for each and changes nothing when all is there.
set -eu

say() { printf 'setup: %s\n' "$*"; }
fail() {
	printf 'setup: %s\n' "$1" >&2
	shift
	for line in "$@"; do printf '       %s\n' "$line" >&2; done
	exit 1
}

have() { command -v dbus-run-session >/dev/null 2>&1 && command -v gnome-keyring-daemon >/dev/null 2>&1; }

# as_root runs a command as root, without ever waiting for a password where
# nobody could type one.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null 2>&1; then
		if [ -t 0 ] && [ -z "${CI:-}" ]; then sudo "$@"; else sudo -n "$@"; fi
	else
		return 1
	fi
}

install_keychain() {
	if command -v apt-get >/dev/null 2>&1; then
		say 'installing a keychain for its test (apt-get install dbus gnome-keyring)'
		as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq ||
			say 'the package lists could not be refreshed; trying with the old ones'
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends dbus gnome-keyring
	elif command -v dnf >/dev/null 2>&1; then
		say 'installing a keychain for its test (dnf install dbus-daemon gnome-keyring)'
		as_root dnf install -y -q dbus-daemon gnome-keyring
	elif command -v pacman >/dev/null 2>&1; then
		say 'installing a keychain for its test (pacman -S dbus gnome-keyring)'
		as_root pacman -Sy --noconfirm --needed dbus gnome-keyring
	else
		return 1
	fi
}

have_webkit() { command -v WebKitWebDriver >/dev/null 2>&1 && command -v Xvfb >/dev/null 2>&1; }

install_webkit() {
	if command -v apt-get >/dev/null 2>&1; then
		say 'installing WebKit and its driver for the test of the phone page (apt-get install webkit2gtk-driver xvfb)'
		as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq ||
			say 'the package lists could not be refreshed; trying with the old ones'
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends webkit2gtk-driver xvfb
	elif command -v dnf >/dev/null 2>&1; then
		say 'installing WebKit and its driver for the test of the phone page (dnf install webkit2gtk4.1-driver xorg-x11-server-Xvfb)'
		as_root dnf install -y -q webkit2gtk4.1-driver xorg-x11-server-Xvfb
	else
		return 1
	fi
}

if [ "$(uname -s)" != Linux ]; then
	say 'keychain: the test of one on a message bus is for Linux'
	say 'webkit: NOT TESTED: its driver is for Linux'
	exit 0
fi
have_webkit || install_webkit || true
if have_webkit; then
	say "webkit: $(command -v WebKitWebDriver)"
else
	say 'webkit: NOT TESTED: there is no WebKitWebDriver with an Xvfb, and none could be installed'
fi
have || install_keychain || true
if have; then
	say "keychain: $(command -v gnome-keyring-daemon)"
elif command -v dbus-run-session >/dev/null 2>&1; then
	fail 'there is no gnome-keyring-daemon, which the test of the keychain needs, and it could not be installed.' \
		'Install the package gnome-keyring by hand and run this again.'
else
	say 'keychain: NOT TESTED: there is no message bus, and none could be installed'
fi
