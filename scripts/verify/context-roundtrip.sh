#!/bin/bash
# Carries a login from one tapin to another and shows that it arrived, whole and
# alone: two sidecars on this machine, each with a home and a browser of its own,
# and a site that echoes the cookies it gets. Says each step; ends with 1 at the
# first that does not hold. Needs curl, jq and Go; builds bin/tapin if it is not there.
#   scripts/verify/context-roundtrip.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

for tool in curl jq go; do
	command -v "$tool" >/dev/null || { echo "this needs $tool in the PATH" >&2; exit 2; }
done
[ -x bin/tapin ] || make build

work=$(mktemp -d)
pids=()
cleanup() {
	for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
	for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
	rm -rf "$work"
}
trap cleanup EXIT

steps=0
ok() { steps=$((steps + 1)); printf 'ok %2d  %s\n' "$steps" "$1"; }
fail() { printf 'FAILED  %s\n' "$1" >&2; shift; printf '%s\n' "$@" >&2; exit 1; }
same() { [ "$2" = "$3" ] || fail "$1" "wanted: $3" "got:    $2"; ok "$1"; }
holds() { [ "$(jq "$3" <<<"$2")" = true ] || fail "$1" "not so: $3" "got: $2"; ok "$1"; }

# wait_for FILE: until something is written to it.
wait_for() {
	for _ in $(seq 300); do [ -s "$1" ] && return 0; sleep 0.1; done
	fail "nothing was written to $1" "$(cat "$work"/*.log)"
}

go build -o "$work/echo" ./scripts/verify/echo
"$work/echo" >"$work/port" &
pids+=($!)
wait_for "$work/port"
port=$(cat "$work/port")
site=http://127.0.0.1:$port other=http://localhost:$port

for name in a b; do
	mkdir -m 700 "$work/$name"
	TAPIN_HOME=$work/$name TAPIN_VAULT_KEY=$("$work/echo" key) \
		bin/tapin sidecar --set listen.control=127.0.0.1:0 --set "egress.allow=127.0.0.1:$port,localhost:$port" \
		>"$work/$name.ready" 2>"$work/$name.log" &
	pids+=($!)
done
wait_for "$work/a.ready"
wait_for "$work/b.ready"

# call a|b METHOD PATH [BODY]: as the agent would. A body of @FILE is a file.
call() {
	curl -sS -X "$2" -H "Authorization: Bearer $(cat "$work/$1/agent.token")" \
		-H 'Content-Type: application/json' ${4+--data-binary "$4"} "http://$(cat "$work/$1/control.addr")$3"
}
go_to() { call "$1" POST /session/navigate "{\"url\":\"$2\",\"screenshot\":false}" >/dev/null; }
# seen a|b URL: what the site shows there, as JSON.
seen() { go_to "$1" "$2"; call "$1" GET /session/text | jq -c '.text | fromjson'; }

echo "The default path: what happens without any of it."
holds "A starts a browser with nothing in it" "$(call a POST /session/start "{\"url\":\"$site/cookies\",\"screenshot\":false}")" '.ok and (has("context")|not)'
same "which sends no cookie" "$(call a GET /session/text | jq -c '.text|fromjson')" '{"cookies":{}}'

echo "Export."
go_to a "$site/cookies/set?session=abc123&user=alice"
same "the site set two cookies" "$(seen a "$site/cookies")" '{"cookies":{"session":"abc123","user":"alice"}}'
same "and a page stored two keys" "$(seen a "$site/keys?token=t1&theme=dark")" '{"theme":"dark","token":"t1"}'
call a POST /context/export "{\"origin\":\"$site\",\"includeStorage\":true}" >"$work/one.json"
jq -c .envelope "$work/one.json" >"$work/envelope.json"
envelope=$(cat "$work/envelope.json")
holds "the envelope has both cookies, both keys and an integrity of 64 hex digits" "$envelope" \
	'([.cookies[]|.name+"="+.value]|sort) == ["session=abc123","user=alice"] and .localStorage == {"theme":"dark","token":"t1"} and (.integrity|test("^[0-9a-f]{64}$"))'
same "which is the SHA-256 of the rest" "$(jq -cSj 'del(.integrity)' "$work/envelope.json" | sha256sum | cut -d' ' -f1)" "$(jq -r .integrity "$work/envelope.json")"
sleep 0.01 # another millisecond, so that the two differ where they may
call a POST /context/export "{\"origin\":\"$site\"}" | jq -c .envelope >"$work/two.json"
masked() { sed -E 's/"capturedAt":[0-9]+/"capturedAt":0/; s/"integrity":"[0-9a-f]+"/"integrity":""/' "$1"; }
[ "$(jq .capturedAt "$work/two.json")" != "$(jq .capturedAt "$work/envelope.json")" ] || fail "the two exports were made at the same time"
same "a second export is the same, byte for byte, but for capturedAt and integrity" "$(masked "$work/two.json" | sha256sum)" "$(masked "$work/envelope.json" | sha256sum)"

echo "B has something else, on this site and on another."
call b POST /session/start "{\"url\":\"$other/cookies/set?elsewhere=stays\",\"screenshot\":false}" >/dev/null
seen b "$other/keys?far=stays" >/dev/null
go_to b "$site/cookies/set?session=old&leftover=1"
same "its own cookies" "$(seen b "$site/cookies")" '{"cookies":{"leftover":"1","session":"old"}}'
same "its own keys" "$(seen b "$site/keys?stale=yes")" '{"stale":"yes"}'

echo "An envelope in which one byte was changed."
jq -c '{envelope:.}' "$work/envelope.json" | sed 's/abc123/abc124/' >"$work/torn.json"
answer=$(call b POST /context/import "@$work/torn.json")
holds "is refused with INTEGRITY_MISMATCH and integrityError" "$answer" '.ok == false and .error == "INTEGRITY_MISMATCH" and (.integrityError|length) > 0'
same "its cookies are as they were" "$(seen b "$site/cookies")" '{"cookies":{"leftover":"1","session":"old"}}'
same "and so are its keys" "$(seen b "$site/keys")" '{"stale":"yes"}'

echo "Import."
jq -c '{envelope:.}' "$work/envelope.json" >"$work/whole.json"
holds "ok, two cookies, two keys" "$(call b POST /context/import "@$work/whole.json")" '.ok and .appliedCookies == 2 and .appliedStorageKeys == 2 and (has("integrityError")|not)'
same "the site is sent these and no other cookies" "$(seen b "$site/cookies")" '{"cookies":{"session":"abc123","user":"alice"}}'
same "and finds these and no other keys" "$(seen b "$site/keys")" '{"theme":"dark","token":"t1"}'
same "the other site's cookies are untouched" "$(seen b "$other/cookies")" '{"cookies":{"elsewhere":"stays"}}'
same "and its keys" "$(seen b "$other/keys")" '{"far":"stays"}'
go_to b "$site/keys" # sessionStorage is a tab's: both read it at the site
call b POST /context/export "{\"origin\":\"$site\"}" | jq -c .envelope >"$work/back.json"
same "exported again from B it is what came from A, byte for byte" "$(masked "$work/back.json" | sha256sum)" "$(masked "$work/envelope.json" | sha256sum)"
holds "with strictOrigin a tab at another site refuses it" \
	"$(go_to b "$other/"; jq -c '{envelope:.,strictOrigin:true}' "$work/envelope.json" >"$work/strict.json"; call b POST /context/import "@$work/strict.json")" \
	'.error == "ORIGIN_MISMATCH" and (has("integrityError")|not)'
holds "without it the tab goes to the site by itself" "$(call b POST /context/import "@$work/whole.json")" '.ok and .appliedCookies == 2'
same "and is there" "$(call b GET /session/status | jq -c '{url}')" "{\"url\":\"$site/\"}"

echo "The journal."
journal() { call "$1" GET '/journal?recent=200&what='"$2" | jq -c .entries; }
holds "A's names the exports, their origin and how much" "$(journal a context.export)" "length == 2 and all(.[]; .origin == \"$site\" and .counts.cookies == 2 and .counts.storage_keys == 2 and .outcome == \"ok\")"
holds "B's names the imports, and the two that were refused" "$(journal b context.import)" \
	"(map(.outcome)|sort) == [\"INTEGRITY_MISMATCH\",\"ORIGIN_MISMATCH\",\"ok\",\"ok\"] and any(.[]; .outcome == \"ok\" and .origin == \"$site\" and .counts.cookies == 2)"
if grep -rqE 'abc123|alice|stays' "$work/a/journal" "$work/b/journal" "$work/a.log" "$work/b.log"; then fail "a value is in a journal or a log"; fi
ok "no value is in a journal or a log"

echo "The default path again."
call a POST /session/stop '{}' >/dev/null
holds "a new session of A" "$(call a POST /session/start "{\"url\":\"$site/cookies\",\"screenshot\":false}")" '.ok'
same "starts with nothing" "$(call a GET /session/text | jq -c '.text|fromjson')" '{"cookies":{}}'
[ -z "$(ls "$work"/a/contexts/*.age "$work"/b/contexts/*.age 2>/dev/null)" ] || fail "a login was saved that nobody asked for"
ok "and no login was saved that nobody asked for"

printf '\nAll %d steps held. The envelope took %d bytes.\n' "$steps" "$(wc -c <"$work/envelope.json")"
