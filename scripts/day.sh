#!/usr/bin/env bash
# Runs the working day of docs/day.md: each command of its console blocks, in order,
# on two emulators of 50 heads, staging and production, and the shop of
# inbox/examples/shop. It prints each command and its output, and then figures.
#
#	scripts/day.sh [--check]
#
# With --check it ends with 1 if the page shows other output or other figures. Times,
# ports and generated ids are not compared.
#
# Needs Linux, Go and curl. Everything is in a temporary folder, which is removed at the end.
set -euo pipefail
# git's own variables and CDPATH could lead to another repository.
unset CDPATH $(env -i "PATH=$PATH" git rev-parse --local-env-vars)
cd "$(dirname "$0")/.."
export NO_PROXY='*' no_proxy='*' LC_ALL=C
for name in ${!HEADS_@} ${!SHOP_@}; do unset "$name"; done

check=''
case ${1-} in
'') ;;
--check) check=1 ;;
*)
	printf 'usage: scripts/day.sh [--check]\n' >&2
	exit 2
	;;
esac

exec 9>&2 # for fail, since the output of commands is kept
page=$PWD/docs/day.md
work=$(mktemp -d)
declare -A pids=() # of what runs, by name
finish() {
	local pid left
	for pid in "${pids[@]}"; do mine "$pid" && kill "$pid"; done
	for _ in $(seq 100); do
		left=''
		for pid in "${pids[@]}"; do mine "$pid" && left="$left $pid"; done
		[ -n "$left" ] || break
		sleep 0.1
	done
	# shellcheck disable=SC2086
	[ -z "$left" ] || kill -KILL $left
	rm -rf "$work"
} 2>/dev/null
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# mine PID reports whether a process is a child of this script. The number of one that
# was killed may be another's by now.
mine() { [ "$(sed -n 's/^PPid:\t//p' "/proc/$1/status" 2>/dev/null)" = $$ ]; }

fail() {
	{ [ ! -s "$work/shop.log" ] || printf 'the log of the shop ends with:\n%s\n' "$(tail -n 5 "$work/shop.log")"; } >&9
	printf 'FAILED: %s\n' "$*" >&9
	exit 1
}

# within SECONDS COMMAND... waits until a command succeeds.
within() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || fail "not within the time: $*"
		sleep 0.1
	done
}

# text KEY prints the string under a key of a JSON object, number KEY the number.
text() { sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p'; }
number() { sed -n 's/.*"'"$1"'":\([0-9]*\).*/\1/p'; }

# free_port prints a port on which nothing listens. It lies below those that the system
# takes for outgoing connections, so that it stays free while its program is down. It is
# odd, since headsctl test takes even ones.
free_port() {
	local port
	while :; do
		port=$((10001 + 2 * (RANDOM % 11000)))
		if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
			echo "$port"
			return
		fi
	done
}

# launch NAME PROGRAM ARG... starts a program, with its output in NAME.out and its log in
# NAME.log, and its number in NAME.pid.
launch() {
	local name=$1
	shift
	"$@" >"$work/$name.out" 2>>"$work/$name.log" &
	pids[$name]=$!
	disown # so that nothing is printed when it is killed
	echo "${pids[$name]}" >"$name.pid"
}

# start NAME starts the shop or its CRM, and returns when it answers.
start() {
	case $1 in
	shop)
		PORT=$shop_port SHOP_DB=$work/shop.db SHOP_CRM_URL=http://127.0.0.1:$crm_port/sessions SHOP_OPERATOR_TOKEN=$OPERATOR_TOKEN \
			SHOP_ATTEMPTS=3 HEADS_BASE_URL=$PRODUCTION_URL HEADS_TOKEN=$HEADS_PRODUCTION_TOKEN launch shop ./shop
		within 30 curl -fsS -o /dev/null "$SHOP/health" 2>/dev/null
		;;
	crm)
		local kept
		kept=$(mktemp -d "$work/crm.XXXXXX")
		launch crm "$work/bin/receiver" -addr "127.0.0.1:$crm_port" -dir "$kept"
		within 30 grep -q URL "$work/crm.out"
		;;
	*) fail "start $1: there is the shop and its crm" ;;
	esac
}

control() { curl -fsS -H 'Content-Type: application/json' "${@:2}" "$PRODUCTION_URL/_emulator/$1"; }

# production prints the ids of the heads of production.
production() { sed -n 's/.*production: "\([^"]*\)".*/\1/p' heads.yaml; }

# visitors N [COMMAND] lets N visitors come, each to a head of production. They say hello,
# ask where an order is, and leave. COMMAND runs when half of them have left.
visitors() {
	local head session left=0 answered=0 sessions=()
	for head in $(production | head -n "$1"); do
		session=$(control sessions -d '{"headId":"'"$head"'"}' | text id)
		sessions+=("$session")
		control "sessions/$session/message" -d '{"text":"Hello"}' >/dev/null
		control "sessions/$session/tool-calls" -d '{"tool":"order_status","arguments":{"order":"7"}}' >"$work/reply"
		! grep -q '"message":"Your order has been shipped."' "$work/reply" || answered=$((answered + 1))
	done
	for session in "${sessions[@]}"; do
		control "sessions/$session/close" -d '{}' >/dev/null
		left=$((left + 1))
		[ "$left" -ne $(($1 / 2)) ] || eval "${2-}"
	done
	printf '%s\n' "${sessions[@]}" >>"$work/sessions"
	echo "${#sessions[@]} visitors came, $answered were told where their order is, $left left"
}

# happened prints what visits have caused: session and event.
happened() { sed 's/.*/& start_conversation\n& end_conversation/' "$work/sessions" | sort; }

# delivered [FILTER] prints session and event of the deliveries of the emulator that ended.
delivered() {
	control "deliveries?final=true${1-}" | grep -o '"event":"[a-z_]*","eventId":[0-9]*,"headId":"[^"]*","sessionId":"[^"]*"' |
		sed 's/"event":"\([a-z_]*\)".*"sessionId":"\(.*\)"/\2 \1/' | sort -u
}

# in_crm prints session and event of the sessions that the CRM has.
in_crm() {
	find "$work"/crm.* -name '*.body' -exec grep -h '' {} + | while read -r session; do
		grep -o '"event":"[a-z_]*"' <<<"$session" | sed 's/"event":"\(.*\)"/'"$(text session_id <<<"$session")"' \1/'
	done | sort -u
}

# settle waits until no event is on its way.
settle() { within 60 settled; }
settled() {
	[ "$(delivered)" = "$(happened)" ] && [ "$(curl -fsS -H "$operator" "$SHOP/stats" | number pending)" = 0 ]
}

# emulator NAME SEED starts an emulator with the heads of heads.yaml. Of the last five
# heads three have a visual, and two a voice, that can't stream. It sets NAME_URL and
# HEADS_NAME_TOKEN.
emulator() {
	sed -n 's/.*label: \([^,]*\),.*'"$1"': "\([^"]*\)".*/\2 \1/p' heads.yaml | awk '
		BEGIN { printf "{\"visuals\":[{\"id\":\"still\",\"mode\":\"default\"},{\"id\":\"lively\",\"mode\":\"two_loops\"}],\"heads\":[" }
		{
			id = $1; sub(/^[^ ]* /, "")
			printf "%s{\"id\":\"%s\",\"name\":\"%s\",\"operationMode\":\"oc\",\"language\":\"en-US\",\"headVisualId\":\"%s\",\"ttsProvider\":\"%s\",\"ttsVoice\":\"%s\"}",
				(NR > 1) ? "," : "", id, $0, (NR > 45 && NR <= 48) ? "lively" : "still", (NR > 48) ? "polly" : "azure", (NR > 48) ? "Joanna" : "en-US-plain"
		}
		END { print "]}" }' >"$work/$1.json"
	launch "$1" "$work/bin/heads-emulator" -addr 127.0.0.1:0 -json -seed "$2" -seed-file "$work/$1.json"
	within 30 grep -q baseURL "$work/$1.out"
	export "${1^^}_URL=$(text baseURL <"$work/$1.out")" "HEADS_${1^^}_TOKEN=$(text token <"$work/$1.out")"
}

# website writes a page for each city, with the access URLs of its heads in production.
website() {
	local id city
	mkdir site
	sed -n 's/.*label: [^ ]* \([^,]*\),.*production: "\([^"]*\)".*/\2 \1/p' heads.yaml | while read -r id city; do
		printf '<iframe src="%s"></iframe>\n' "$(curl -fsS -H "Authorization: Bearer $HEADS_PRODUCTION_TOKEN" "$PRODUCTION_URL/head/$id" | text publicUrl)" >>"site/$city.html"
	done
}

# morning makes everything that the day begins with.
morning() {
	export PATH=$work/bin:$PATH XDG_STATE_HOME=$work/state OPERATOR_TOKEN
	mkdir "$work/bin" "$work/team"
	go build -C cmd/headsctl -o "$work/bin/" .
	go build -o "$work/bin/" ./cmd/heads-emulator ./internal/dev/receiver
	go build -C inbox/examples/shop -o "$work/team/" .
	shop_port=$(free_port) crm_port=$(free_port)
	while [ "$crm_port" = "$shop_port" ]; do crm_port=$(free_port); done
	SHOP=http://127.0.0.1:$shop_port OPERATOR_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
	operator="Authorization: Bearer $OPERATOR_TOKEN"
	cp inbox/examples/shop/{shop.test.yaml,tools.json} "$work/team/"
	sed "s|https://shop.example.com|$SHOP|g" inbox/examples/shop/heads.yaml >"$work/team/heads.yaml"
	cd "$work/team"
	emulator staging 1
	emulator production 2
	start crm
	start shop
	headsctl apply -f heads.yaml --env staging --confirm staging >"$work/applied" 2>&1 || fail "$(cat "$work/applied")"
	headsctl apply -f heads.yaml --env production --confirm production >"$work/applied" 2>&1 || fail "$(cat "$work/applied")"
	website
	: >"$work/sessions"
}

# night changes three heads of production by hand.
night() {
	local ids
	mapfile -t ids < <(production)
	(
		export HEADS_BASE_URL=$PRODUCTION_URL HEADS_TOKEN=$HEADS_PRODUCTION_TOKEN
		headsctl set "${ids[0]}" greetings='We are closed today.'
		headsctl webhooks ensure "${ids[11]}" --url "$SHOP/events" --event end_conversation
		headsctl delivery off "${ids[32]}"
	) >"$work/night" 2>&1 || fail "$(cat "$work/night")"
}

# steps prints the commands of the page. A command that ends with another status than 0
# says so: # ends with 1
steps() { awk '/^```console$/ { console = 1; next } /^```/ { console = 0 } console && sub(/^\$ /, "")' "$page"; }

# shown prints the console blocks of the page, and the block of figures.
shown() {
	awk '
		/^```console$/ { console = 1; next }
		/^```text$/ { getline; figures = /^figures$/ }
		/^```/ { console = figures = 0 }
		console || figures' "$page"
}

# run COMMAND runs a command of the page and prints it with its output.
run() {
	local want=0 got=0
	printf '$ %s\n' "$1" | tee -a "$work/day"
	[[ $1 =~ '# ends with '([0-9]+) ]] && want=${BASH_REMATCH[1]}
	{ eval "$1"; } >"$work/output" 2>&1 </dev/null || got=$?
	tee -a "$work/day" <"$work/output"
	[ "$got" = "$want" ] || fail "$1: ended with $got"
}

# total EXPRESSION prints a number that the day has printed, the last one.
total() { sed -nE "s/$1/\1/p" "$work/day" | tail -n 1; }

figures() {
	echo figures
	echo "heads $(control state | grep -o '"publicId"' | wc -l)"
	echo "drifted $(sed -nE 's/^[0-9]+ same, ([0-9]+) differ.*/\1/p' "$work/day" | head -n 1)"
	echo "scenarios $(total '^([0-9]+) passed, 0 failed.*')"
	echo "converted $(control state | grep -o '"videoStreaming":true' | wc -l)"
	echo "blocked $(grep -o '"outcome": *"blocked"' moves.json | wc -l)"
	echo "rewritten $(total '.* files, ([0-9]+) addresses')"
	echo "sessions $(sort -u "$work/sessions" | wc -l)"
	echo "accepted $(delivered '&outcome=delivered' | wc -l)"
	echo "dead $(sed -n 's/.*"dead":\([0-9]*\).*/\1/p' "$work/day" | sort -n | tail -n 1)"
	echo "redriven $(total '.*"redriven":([0-9]+).*')"
	echo "lost $(comm -23 <(happened) <(in_crm) | wc -l)"
}

# comparable replaces times, ports and generated ids. The ids of heads.yaml, which begin
# with 1c42 and 7f03, stay.
comparable() {
	sed -E 's/\b(1c42|7f03)([0-9a-f]{4})-/\1\2~/g
		s/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/ID/g
		s/~/-/g
		s/127\.0\.0\.1:[0-9]+/127.0.0.1:PORT/g
		s/\b[0-9]+(\.[0-9]+)?(ms|µs|s)\b/TIME/g
		s/\b[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+Z?/TIME/g'
}

morning
night
while IFS= read -r command <&8; do run "$command"; done 8< <(steps)
figures | tee -a "$work/day"
[ -z "$check" ] || diff -u --label docs/day.md <(shown | comparable) --label 'this run' <(comparable <"$work/day") ||
	fail 'docs/day.md shows other output or other figures'
