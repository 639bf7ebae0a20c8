#!/usr/bin/env bash
# firsthome.sh PROGRAM: has an old tapin write a home, and puts it, with what was
# answered, where the tests of homes that live find it. The one that is there was
# written by the first version that had all rooms of today, commit faea3e7:
#
#   git clone . /tmp/first && cd /tmp/first && git checkout faea3e7
#   go build -o tapin ./cmd/tapin
set -euo pipefail
program=$(realpath "$1")
into=$(cd "$(dirname "$0")/../.." && pwd)/cmd/tapin/testdata/lives
work=$(mktemp -d)
export TAPIN_HOME=$work/home TAPIN_LISTEN_CONTROL=127.0.0.1:0 TAPIN_LISTEN_PUBLIC=127.0.0.1:0
mkdir "$work/site"
echo '<!doctype html><title>Sign in</title><input id=field autofocus><p>Amount due: $142.50<button id=pay>Confirm Payment</button>' > "$work/site/index.html"
python3 -u -m http.server -d "$work/site" --bind 127.0.0.1 0 > "$work/site.log" 2>&1 &
server=$!
trap '"$program" down > /dev/null 2>&1 || true; kill $server; rm -rf "$work"' EXIT
until grep -q port "$work/site.log"; do sleep 0.1; done
site=http://127.0.0.1:$(sed -n 's/.*port \([0-9]*\).*/\1/p' "$work/site.log")

ask() { # who method path [body]
  curl -sS --fail-with-body -X "$2" -H "Authorization: Bearer $(cat "$TAPIN_HOME/$1.token")" ${4:+-d "$4"} "http://$(cat "$TAPIN_HOME/control.addr")$3"
}
field() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" | head -1; }
up() { "$program" up --background --no-check --allow-private > /dev/null; }
session() { ask agent POST /session/start "{\"screenshot\":false,\"url\":\"$site/\"$1}" | field session_id; }
handoff() { ask agent POST /handoff/start "{\"reason\":\"$1\",\"task\":\"first $1\"${2:-}}" | field handoff_id; }
ends='' handoffs=0
over() { ends="$ends${ends:+, }\"$1\": \"$2\""; handoffs=$((handoffs + 1)); }

up
session ',"context":"bank"' > /dev/null
id=$(handoff login); ask agent POST "/handoff/$id/cancel" '{}' > /dev/null; over "$id" CANCELLED
id=$(handoff 2fa); ask owner POST "/handoff/$id/present" > /dev/null; ask owner POST "/handoff/$id/finish" '{}' > /dev/null; over "$id" FINISHED
id=$(handoff permission ',"timeout_ms":1000,"on_timeout":"return"'); sleep 3; over "$id" TIMED_OUT
ask owner POST /inbox '{"text":"from the first version"}' > /dev/null
run=$(ask agent POST /task-run/start '{"goal":"the first"}' | field run_id); ask agent POST "/task-run/$run/complete" '{"status":"COMPLETED"}' > /dev/null
ask agent POST /task-run/start '{"goal":"the second"}' > /dev/null
pay='{"site":"127.0.0.1","payee":"Verizon","amount":"142.50","currency":"USD"}'
id=$(ask agent POST /approval/request "$pay" | field approval_id); ask owner POST "/approval/$id/decide" '{"decision":"deny"}' > /dev/null
ask agent POST /session/stop '{}' > /dev/null
"$program" down > /dev/null; up
session '' > /dev/null
id=$(handoff captcha); ask owner POST "/handoff/$id/cancel" '{}' > /dev/null; over "$id" CANCELLED
session '' > /dev/null
id=$(handoff other ',"timeout_ms":1000'); sleep 3; over "$id" TIMED_OUT
session '' > /dev/null
id=$(handoff manual_recovery); ask owner POST "/handoff/$id/park" > /dev/null; over "$id" RUNNING
"$program" down > /dev/null
rm -rf "$TAPIN_HOME"/run "$TAPIN_HOME"/logs "$TAPIN_HOME"/locks "$TAPIN_HOME"/tmp "$TAPIN_HOME"/downloads

mkdir -p "$into"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$TAPIN_HOME" -cf - . | gzip -9n > "$into/first.tar.gz"
printf '{"written": "%s", "handoffs": %d, "runs": 2, "approvals": 1, "login": "bank", "message": "from the first version", "ends": {%s}}\n' "$(date -u +%FT%TZ)" "$handoffs" "$ends" > "$into/first.json"
ls -l "$into"
