#!/usr/bin/env bash
# Tests the emulator with other programs: curl calls all operations of an emulator
# in another process, over TCP, and openssl computes its signatures. Then it runs
# the commands of docs/emulator.md.
#
# Needs Go, curl and openssl.
set -euo pipefail
# git's own variables and CDPATH could lead to another repository.
unset CDPATH $(env -i "PATH=$PATH" git rev-parse --local-env-vars)
cd "$(dirname "$0")/.."
export NO_PROXY='*' no_proxy='*'

dir=$(mktemp -d)
emulator_pid='' receiver_pid=''
finish() {
	for pid in $emulator_pid $receiver_pid; do
		kill "$pid" 2>/dev/null || true
	done
	rm -rf "$dir"
}
trap finish EXIT

step() { printf '== %s\n' "$*"; }
fail() {
	printf 'FAILED: %s\n' "$*" >&2
	exit 1
}

# start_emulator [flag ...] sets base, token and head.
start_emulator() {
	rm -f "$dir/announced"
	mkfifo "$dir/announced"
	"$dir/bin/heads-emulator" -addr 127.0.0.1:0 -json "$@" >"$dir/announced" 2>"$dir/log" &
	emulator_pid=$!
	local announced=''
	read -r announced <"$dir/announced" || fail "the emulator did not start: $(cat "$dir/log")"
	base=$(text baseURL <<<"$announced")
	token=$(text token <<<"$announced")
	head=$(sed 's/.*"heads":\["\([^"]*\)".*/\1/' <<<"$announced")
}

stop_emulator() {
	kill -TERM "$emulator_pid"
	wait "$emulator_pid" || fail "the emulator ended with status $?: $(cat "$dir/log")"
	emulator_pid=''
}

# text KEY reads a JSON object and prints the string under a key, which must occur
# once.
text() { sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p'; }

# call STATUS METHOD PATH [BODY] sends a request and asserts its status. The answer
# is in the file answer.
call() {
	local want=$1 method=$2 path=$3 got
	local args=(-sS -X "$method" -o "$dir/answer" -w '%{http_code}' -H "Authorization: Bearer $token")
	if [ $# -gt 3 ]; then
		args+=(-H 'Content-Type: application/json' --data-binary "$4")
	fi
	: >"$dir/answer"
	got=$(curl "${args[@]}" "$base$path")
	[ "$got" = "$want" ] || fail "$method $path: status $got, not $want: $(cat "$dir/answer")"
}

# holds TEXT asserts that the last answer contains a text.
holds() { grep -qF -- "$1" "$dir/answer" || fail "the answer does not hold $1: $(cat "$dir/answer")"; }

# signature FILE KEY prints the HMAC-SHA256 of a file in hex.
signature() { openssl dgst -sha256 -hmac "$2" -r "$1" | cut -d ' ' -f 1; }

step build
go build -o "$dir/bin/" ./cmd/heads-emulator ./internal/dev/receiver

mkdir "$dir/received"
mkfifo "$dir/listening"
"$dir/bin/receiver" -dir "$dir/received" >"$dir/listening" &
receiver_pid=$!
read -r listening <"$dir/listening" || fail "the receiver did not start"
export RECEIVER_URL=${listening#*=}

start_emulator -retry 100ms,200ms,400ms

step credential
right=$token
token=wrong
call 401 GET "/head/$head"
token=$right
call 200 GET "/head/$head"
holds "\"id\":\"$head\""

step update
call 200 PUT /head/update '{"id":"'"$head"'","greetings":"Hello from a shell","isActive":false}'
call 200 GET "/head/$head"
holds '"greetings":"Hello from a shell"'
holds '"isActive":true'
call 400 PUT /head/update '{"id":"'"$head"'","name":"string"}'
call 400 PUT /head/update '{"id":"'"$head"'"}'

step convert
call 200 PUT /head/update '{"id":"'"$head"'","ttsProvider":"polly","ttsVoice":"Joanna"}'
call 200 GET "/head/$head"
visual=$(text headVisualId <"$dir/answer")
before=$(text publicUrl <"$dir/answer")
call 200 GET "/head_visual/$visual"
holds '"mode":"default"'
call 422 PUT "/head/$head/video-streaming?videoStreaming=true"
call 200 GET "/head/$head"
holds '"videoStreaming":false'
call 200 PUT /head/update '{"id":"'"$head"'","ttsProvider":"elevenlabs","ttsVoice":"pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5"}'
call 200 PUT "/head/$head/video-streaming?videoStreaming=true"
call 200 GET "/head/$head"
holds '"videoStreaming":true'
holds '"splitter":false'
after=$(text publicUrl <"$dir/answer")
[ "${before#https://chat.example.test}" = "${after#https://stream.example.test}" ] || fail "the address went from $before to $after"
[ "$before" != "$after" ] || fail "the address is the old one"

step refuse to convert an expressive head
expressive=33333333-3333-4333-8333-333333333333
call 200 POST /_emulator/seed '{"visuals":[{"id":"loops","mode":"two_loops"}],"heads":[{"id":"'"$expressive"'","headVisualId":"loops"}]}'
call 409 PUT "/head/$expressive/video-streaming?videoStreaming=true"

step register
call 200 PUT "/head/$head/enable-events?enableEvents=true"
call 201 POST /head-events '{"headId":"'"$head"'","webhookUrl":"'"$RECEIVER_URL"'","startConversation":true,"endConversation":true}'
key=$(text sharedKey <"$dir/answer")
call 400 POST /head-events '{"headId":"'"$head"'","webhookUrl":"http://example.com/events"}'
call 200 GET "/head-events?headId=$head"
holds "\"sharedKey\":\"$key\""
hook=$(sed 's/.*"id":\([0-9]*\),.*/\1/' "$dir/answer")

step session
call 200 POST /_emulator/sessions '{"headId":"'"$head"'"}'
session=$(text id <"$dir/answer")
for action in message message inactive close; do
	call 200 POST "/_emulator/sessions/$session/$action" '{}'
done
call 409 POST "/_emulator/sessions/$session/message" '{}'
call 200 GET "/_emulator/deliveries?sessionId=$session&event=end_conversation&final=true&wait=30s"
holds '"status":200'

step verify signature
n=0
for event in start_conversation end_conversation; do
	n=$((n + 1))
	body=$dir/received/$n.body
	grep -qF '"event_type":"'$event'"' "$body" || fail "event $n is not $event: $(cat "$body")"
	grep -qF '"session_id":"'"$session"'"' "$body" || fail "event $n is of another session"
	sent=$(cat "$dir/received/$n.signature")
	[ "$(signature "$body" "$key")" = "$sent" ] || fail "the signature of $event is wrong"
	sed 's/_conversation/_conversatiom/' "$body" >"$dir/tampered"
	[ "$(signature "$dir/tampered" "$key")" != "$sent" ] || fail "a body that was changed has the same signature"
	[ "$(signature "$body" "other$key")" != "$sent" ] || fail "another key gives the same signature"
done
[ ! -e "$dir/received/3.body" ] || fail "an event came that nobody asked for: $(cat "$dir/received/3.body")"

step a delivery as a Go test
call 200 GET /_emulator/deliveries/1/go-test
cat >"$dir/text.go" <<'GO'
package main

import (
	"encoding/json"
	"os"
)

func main() {
	var copied struct{ Text string }
	if err := json.NewDecoder(os.Stdin).Decode(&copied); err != nil {
		panic(err)
	}
	os.Stdout.WriteString(copied.Text)
}
GO
go run "$dir/text.go" <"$dir/answer" >"$dir/copied_test.go"
printf '{"Replace":{"%s":"%s"}}' "$PWD/internal/copied/copied_test.go" "$dir/copied_test.go" >"$dir/overlay.json"
go test -c -vet=off -o "$dir/bin/copied" -overlay "$dir/overlay.json" "$PWD/internal/copied/copied_test.go"
"$dir/bin/copied" -test.v >"$dir/copied" || fail "the copied test fails: $(cat "$dir/copied")"
grep -qF -- '--- PASS: TestDelivery' "$dir/copied" || fail "no test was copied: $(cat "$dir/copied")"

step tool
call 200 PUT "/head/$head/conversation-settings" '{"conversationSettings":{"tools":[{"name":"hours","description":"Tells the hours.",
	"parameters":[{"name":"day","type":"string","description":"Day."}],"url":"'"$RECEIVER_URL"'"}]}}'
call 200 POST /_emulator/tool-calls '{"headId":"'"$head"'","tool":"hours","arguments":{"day":"Monday"}}'
holds '"message":"received","problem":""'
grep -qF '"day":"Monday"' "$dir/received/3.body" || fail "the tool was sent $(cat "$dir/received/3.body")"

step operations that are not in the contract
call 200 GET "/head/$head/enable-events"
holds true
call 200 GET "/head/$head/conversation-settings"
holds '{"conversationSettings":{"tools":[{"name":"hours"'
call 200 PUT "/head/$head/splitter?splitter=true"
call 200 GET "/head/$head"
holds '"videoStreaming":false'

step change and remove the registration
call 200 PATCH "/head-events/$hook" '{"startConversation":false}'
call 200 GET "/head-events/$hook"
holds '"startConversation":false'
holds '"endConversation":true'
call 200 DELETE "/head-events/$hook"
call 404 GET "/head-events/$hook"

step stop
stop_emulator
! grep -qF -e "$token" -e "$key" "$dir/log" || fail "the log holds a secret"

step the lines of docs/emulator.md
start_emulator
mkdir "$dir/page"
# Each sh block becomes a file, and so does the json or text block after it, which
# is its output.
awk -v dir="$dir/page" '
	/^```sh$/ { file = sprintf("%s/%03d.sh", dir, ++n); next }
	/^```(json|text)$/ { file = sprintf("%s/%03d.want", dir, n); next }
	/^```/ { file = ""; next }
	file { print > file }
' docs/emulator.md
for block in "$dir"/page/*.sh; do
	printf '. %q >%q\n' "$block" "${block%.sh}.got"
done >"$dir/page/all"
(
	cd "$dir/page"
	HEADS_BASE_URL=$base HEADS_TOKEN=$token HEADS_HEAD_ID=$head bash -euo pipefail all
) || fail "a line of docs/emulator.md"

# White space and values that change from run to run are ignored.
normal() {
	sed -E -e 's/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/ID/g' -e 's/[0-9a-f]{32,}/HEX/g' \
		-e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]+Z| [0-9:]{8})/TIME/g' -e 's/(li|MyOrg)-[0-9]+/PUBLIC/g' \
		-e 's/127\.0\.0\.1:[0-9]+/ADDRESS/g' -e 's/"took": ?"[^"]*"/TOOK/g' "$1" | tr -d ' \t\n'
}
blocks=0
for block in "$dir"/page/*.sh; do
	blocks=$((blocks + 1))
	want=${block%.sh}.want got=${block%.sh}.got
	touch "$want"
	[ "$(normal "$want")" = "$(normal "$got")" ] || fail "docs/emulator.md shows another answer.
$(cat "$block")
prints
$(cat "$got")
and not
$(cat "$want")"
done
[ "$blocks" -ge 10 ] || fail "docs/emulator.md has $blocks blocks"
stop_emulator

printf '\nthe emulator holds\n'
