#!/usr/bin/env bash
# Runs each shell line of README.md, CONTRIBUTING.md, the page of the examples and the
# pages in docs once.
# Each line is a separate command. conformance.sh runs those of docs/emulator.md,
# which need a receiver; the tests of cmd/headsctl run those of docs/headsctl.md and
# docs/scenarios.md, and day.sh those of docs/day.md. Those of docs/listen.md need a
# tunnel.
#
# Needs Go.
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
	docs/day.md | docs/emulator.md | docs/headsctl.md | docs/listen.md | docs/scenarios.md) ;;
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
printf '\nall %d shell lines of the pages hold\n' "$lines"
