#!/usr/bin/env bash
# Runs the example programs against the emulator command, each as a process of
# its own, over TCP: quickstart, convert, webhooks, tools.
# The examples fleet, greeter and printed bring their own emulator.
#
# Needs Go and curl.
set -euo pipefail
# git's own variables and CDPATH could lead to another repository.
unset CDPATH $(env -i "PATH=$PATH" git rev-parse --local-env-vars)
cd "$(dirname "$0")/.."
export NO_PROXY='*' no_proxy='*'

dir=$(mktemp -d)
pids=''
finish() {
	for pid in $pids; do
		kill "$pid" 2>/dev/null || true
	done
	rm -rf "$dir"
}
trap finish EXIT

fail() {
	printf 'FAILED: %s\n' "$*" >&2
	exit 1
}

# wait_for FILE TEXT waits until a program has printed a text.
wait_for() {
	for _ in $(seq 300); do
		grep -qF -- "$2" "$1" && return
		sleep 0.1
	done
	fail "$1 does not hold \"$2\": $(cat "$1")"
}

# post PATH BODY calls the control API of the emulator.
post() { curl -sS --fail-with-body -H 'Content-Type: application/json' --data-binary "$2" "$HEADS_BASE_URL/_emulator/$1"; }

text() { sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p'; }

go build -o "$dir/" ./cmd/heads-emulator ./examples/...
go build -C headsmcp -o "$dir/" ./examples/... github.com/modelcontextprotocol/go-sdk/examples/server/hello
go build -C headsotel -o "$dir/" ./examples/...

: >"$dir/announced"
"$dir/heads-emulator" -addr 127.0.0.1:0 -json >"$dir/announced" 2>"$dir/log" &
pids=$!
wait_for "$dir/announced" baseURL
HEADS_BASE_URL=$(text baseURL <"$dir/announced")
HEADS_TOKEN=$(text token <"$dir/announced")
head=$(sed 's/.*"heads":\["\([^"]*\)".*/\1/' "$dir/announced")
export HEADS_BASE_URL HEADS_TOKEN HEADS_HEAD_ID=$head

echo '== -h'
for program in quickstart convert fleet safechanges webhooks tools greeter printed heads-emulator; do
	"$dir/$program" -h >"$dir/out" 2>&1 || fail "$program -h ends with status $?"
	grep -q '^Usage' "$dir/out" || fail "$program -h shows no usage: $(cat "$dir/out")"
	! grep -q 'help requested' "$dir/out" || fail "$program -h ends with an error: $(cat "$dir/out")"
done

echo '== quickstart'
"$dir/quickstart" >"$dir/out"
wait_for "$dir/out" 'again with -write'

echo '== webhooks'
: >"$dir/webhooks.out"
"$dir/webhooks" >"$dir/webhooks.out" &
webhooks=$!
pids="$pids $webhooks"
wait_for "$dir/webhooks.out" 'until interrupted'
session=$(post sessions '{"headId":"'"$head"'"}' | text id)
post "sessions/$session/message" '{"text":"Hello"}' >/dev/null
post "sessions/$session/timeout" '{}' >/dev/null
for event in start_conversation timeout_conversation end_conversation; do
	wait_for "$dir/webhooks.out" "$session: $event"
done
kill -INT "$webhooks"
wait "$webhooks" || fail "webhooks ended with status $?"
wait_for "$dir/webhooks.out" 'no delivery was cut off'

echo '== tools'
: >"$dir/tools.out"
"$dir/tools" >"$dir/tools.out" &
tools=$!
pids="$pids $tools"
wait_for "$dir/tools.out" 'until interrupted'
post tool-calls '{"headId":"'"$head"'","tool":"get_weather","arguments":{"city":"Lisbon"}}' >"$dir/out"
wait_for "$dir/out" 'Sunny in Lisbon'
kill -INT "$tools"
wait "$tools" || fail "tools ended with status $?"

echo '== convert'
"$dir/convert" -provider elevenlabs -voice pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5 >"$dir/out"
wait_for "$dir/out" 'Embedded integrations must use the new one'

echo '== fleet'
"$dir/fleet" >"$dir/out"
wait_for "$dir/out" 'have a new access URL'

echo '== greeter'
"$dir/greeter" "$dir/hello" >"$dir/out"
wait_for "$dir/out" 'greet map[name:Ada]: Hi Ada'
wait_for "$dir/out" 'greet map[]: name is missing'

echo '== printed'
"$dir/printed" >"$dir/out"
wait_for "$dir/out" 'convert one head (internal)'
wait_for "$dir/out" '  GET /head/{id} (client)'
wait_for "$dir/out" 'heads.delivery (consumer)'
wait_for "$dir/out" 'heads.tool find_order (server)'
for metric in 'http.client.request.duration in s' 'heads.delivery.duration in s' 'heads.delivery.count in {delivery}' 'heads.tool.duration in s'; do
	wait_for "$dir/out" "$metric"
done

echo 'all examples passed'
