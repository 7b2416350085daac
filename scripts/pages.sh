#!/usr/bin/env bash
# Runs each shell line of README.md, CONTRIBUTING.md and the pages in docs once.
# Each line is a separate command. conformance.sh runs those of docs/emulator.md,
# which need a receiver; the tests of cmd/headsctl run those of docs/headsctl.md.
#
# Needs Go and curl.
set -euo pipefail
cd "$(dirname "$0")/.."
export NO_PROXY='*' no_proxy='*'

dir=$(mktemp -d)
server=''
finish() {
	[ -z "$server" ] || kill -- "-$server" 2>/dev/null || true
	rm -rf "$dir"
}
trap finish EXIT

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

# fetch runs a go get in a new module, which finds this module here. The
# requirements of this module are already downloaded, and go.sum has their sums.
fetch() {
	local here=$PWD
	go mod download
	mkdir "$dir/new"
	(
		cd "$dir/new"
		cp "$here/go.sum" .
		go mod init example.com/new
		go mod edit -replace "$module=$here"
		GOPROXY=off bash -euc "$1"
		printf 'package main\n\nimport (\n\t_ "%s"\n\t_ "%s/headstest"\n)\n\nfunc main() {}\n' "$module" "$module" >main.go
		GOPROXY=off go run .
	)
}

# serve runs a server on a free port until it answers, and then interrupts it, as
# Ctrl-C does.
serve() {
	set -m # a process group of its own, as in a terminal
	bash -euc "exec $1 -addr 127.0.0.1:0" >"$dir/served" 2>"$dir/log" &
	server=$!
	set +m
	local address=''
	for _ in $(seq 600); do
		address=$(sed -n "s/^export HEADS_BASE_URL='\(.*\)'$/\1/p" "$dir/served")
		[ -z "$address" ] || break
		kill -0 "$server" 2>/dev/null || fail "$1: $(cat "$dir/log")"
		sleep 0.1
	done
	[ -n "$address" ] || fail "$1 does not say where it listens"
	curl -fsS "$address/_emulator/health"
	kill -INT -- "-$server"
	wait "$server" || true # go run tells of the interrupt
	server=''
}

module=$(go list -m)
pages=(README.md CONTRIBUTING.md)
for page in docs/*.md; do
	case $page in
	docs/emulator.md | docs/headsctl.md) ;;
	*) pages+=("$page") ;;
	esac
done

lines=0
while read -r line <&3; do
	lines=$((lines + 1))
	printf '\n$ %s\n' "$line"
	case $line in
	'go get '*) fetch "$line" ;;
	*/cmd/heads-emulator) serve "$line" ;;
	*) bash -euc "$line" </dev/null ;;
	esac
done 3< <(shell_lines "${pages[@]}")
[ "$lines" -ge 8 ] || fail "only $lines shell lines were found"
printf '\nall %d shell lines of the pages hold\n' "$lines"
