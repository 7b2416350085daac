#!/usr/bin/env bash
# Runs each shell line of README.md, CONTRIBUTING.md, the page of the examples and the
# pages in docs once.
# Each line is a separate command. conformance.sh runs those of docs/emulator.md,
# which need a receiver; the tests of cmd/headsctl run those of docs/headsctl.md and
# docs/scenarios.md, and day.sh those of docs/day.md. Those of docs/listen.md need a
# tunnel. docs/first-service.md is run as a whole, from an empty folder.
#
# Needs Go, Node.js, curl and openssl.
set -euo pipefail
# git's own variables and CDPATH could lead to another repository.
unset CDPATH $(env -i "PATH=$PATH" git rev-parse --local-env-vars)
cd "$(dirname "$0")/.."
export NO_PROXY='*' no_proxy='*'


fail() {
	printf 'FAILED: %s\n' "$*" >&2
	exit 1
}

# shell_lines FILE... prints the lines of the sh blocks, and what follows the prompt
# in console blocks.
shell_lines() {
	awk '
		/^```sh$/ { sh = 1; next }
		/^```console$/ { console = 1; next }
		/^```/ { sh = console = 0; next }
		sh && NF { print }
		console && sub(/^\$ /, "") { print }
	' "$@" | awk '!seen[$0]++'
}

pages=(README.md CONTRIBUTING.md examples/README.md)
for page in docs/*.md; do
	case $page in
	docs/day.md | docs/emulator.md | docs/first-service.md | docs/headsctl.md | docs/listen.md | docs/scenarios.md) ;;
	*) pages+=("$page") ;;
	esac
done

lines=0
while read -r line <&3; do
	lines=$((lines + 1))
	printf '\n$ %s\n' "$line"
	bash -euc "$line" </dev/null
done 3< <(shell_lines "${pages[@]}")
[ "$lines" -ge 8 ] || fail "only $lines shell lines were found"

# The program of README.md prints what the page says.
printf '\n== the program of README.md\n'
program=$(mktemp -d)
trap 'rm -rf "$program"' EXIT
awk '/^```go$/ { inside = 1; next } /^```/ { inside = 0 } inside' README.md >"$program/main.go"
[ "$(wc -l <"$program/main.go")" -le 30 ] || fail 'the program of README.md has more than 30 lines'
awk '/^```go$/ { after = 1 } after && /^```text$/ { inside = 1; next } /^```/ { if (inside) exit } inside' README.md >"$program/want"
go run "$program/main.go" >"$program/got"
diff "$program/want" "$program/got" || fail 'the program of README.md prints something else'

# The function of docs/webhooks.md for other languages accepts the event there, and no other.
block() { awk -v language="$1" '$0 == "```" language { inside = 1; next } /^```/ { inside = 0 } inside' docs/webhooks.md; }
node -e "$(block js)"'
	const [body, signature] = process.argv.slice(1);
	if (!verified(body, signature, "example-shared-key") || verified(body + " ", signature, "example-shared-key") ||
		verified(body, "", "example-shared-key") || verified(body, signature, "")) process.exit(1);
' "$(block json)" "$(sed -n 's/^X-Signature-256: //p' docs/webhooks.md)" || fail 'the verifier of docs/webhooks.md is wrong'
# docs/first-service.md: its blocks of code become the files that the page names before them, its
# YAML the beginning of heads.yaml, and its commands run in one shell. Fixed ports become free ones.
printf '\n== docs/first-service.md\n'
free() { node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })'; }
emulator=$(free) service=$(free)
awk '
	/^```sh$/ { inside = "sh"; next }
	/^```(go|csv|json|yaml)$/ && named != "" {
		inside = "file"
		print (named == "heads.yaml") ? "{ cat <<'"'END OF BLOCK'"'" : "cat >" named " <<'"'END OF BLOCK'"'"
		next
	}
	/^```./ { inside = "other"; next }
	/^```$/ {
		if (inside == "file") print "END OF BLOCK"
		if (inside == "file" && named == "heads.yaml") print "sed -n \"/^heads:/,\\$p\" heads.yaml; } >heads.new; mv heads.new heads.yaml"
		inside = named = ""
		next
	}
	inside == "sh" || inside == "file" { print; next }
	NF && inside == "" { named = match($0, /`[a-z_]+\.[a-z]+`:$/) ? substr($0, RSTART + 1, RLENGTH - 3) : "" }
' docs/first-service.md |
	sed "s/ -seed-file / -addr 127.0.0.1:$emulator&/; s/127\.0\.0\.1:8787/127.0.0.1:$emulator/g; s/127\.0\.0\.1:8080/127.0.0.1:$service/g" >"$program/page"
(
	export SDK=$PWD
	cd "$program"
	timeout 300 bash -vemuc "trap 'kill \$(jobs -p) 2>/dev/null || true' EXIT; . ./page" </dev/null >said 2>&1 || fail "docs/first-service.md: $(cat said)"
	grep -qF "$(sed -n 's/^The tool answers `\(.*\)`, and.*/\1/p' "$SDK/docs/first-service.md")" said || fail "docs/first-service.md: the tool answers something else: $(cat said)"
	grep -qF "$(sed -n 's/^`\({"dead".*\)`\..*/\1/p' "$SDK/docs/first-service.md")" said || fail "docs/first-service.md: the status is something else: $(cat said)"
	[ "$(grep -cx '1 file, 1 address' said)" = 2 ] || fail "docs/first-service.md: the page of the website was not rewritten and put back: $(cat said)"
	[ "$(wc -w <"$SDK/docs/first-service.md")" -le 1500 ] || fail 'docs/first-service.md has more than 1500 words'
	printf 'docs/first-service.md holds, with %d lines of Go\n' "$(cat guide/*.go | wc -l)"
)
printf '\nall %d shell lines of the pages hold\n' "$lines"
