#!/usr/bin/env bash
# Tests release.sh and compat.sh in clones of HEAD: what they refuse, a dry run for two
# platforms, that the gate fails for a broken promise, and the last step: complete, or
# as before when something has changed or release.sh was killed.
#
#	scripts/release_test.sh [refusals] [dry] [gate] [last]
#
# KILLS has lines "WHEN COMMAND" for last: the processes of a release end by SIGKILL
# before, after, or so many seconds after the begin of the command.
set -euo pipefail
# git's own variables and CDPATH could lead to another repository.
unset CDPATH $(env -i "PATH=$PATH" git rev-parse --local-env-vars)
cd "$(dirname "$0")/.."
root=$PWD

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null # so that no setting of this machine helps
own=(-c user.name=test -c user.email=test@localhost)

fail() {
	printf 'FAILED: %s\n' "$1" >&2
	exit 1
}

# clone NAME makes a clone of HEAD on a branch, without tags, and goes there.
clone() {
	git clone -q --no-tags "$root" "$work/$1"
	cd "$work/$1"
	git checkout -q -B main "$(git -C "$root" rev-parse HEAD)"
}

commit() { git "${own[@]}" commit -q -a -m "$1"; }

# changelog HEADING ENTRIES puts a section before the first one.
changelog() {
	awk -v heading="$1" -v entries="$2" '/^## / && !n++ { print "## " heading "\n\n" entries "\n" } { print }' CHANGELOG.md >"$work/changelog"
	cp "$work/changelog" CHANGELOG.md
}

# refuses STATUS TEXT ARG... runs release.sh, which has to end with a status and one
# line that has the text, within ten seconds, and to change no ref.
refuses() {
	local status=$1 text=$2 refs got=0
	shift 2
	refs=$(git for-each-ref && git rev-parse HEAD)
	timeout 10 bash scripts/release.sh "$@" >"$work/out" 2>&1 </dev/null || got=$?
	printf '%d  %s\n' "$got" "$(cat "$work/out")"
	[ "$got" = "$status" ] || fail "release.sh $* ended with $got, not $status"
	[ "$(wc -l <"$work/out")" = 1 ] || fail "release.sh $* printed more than a line"
	grep -qF -- "$text" "$work/out" || fail "release.sh $* does not say: $text"
	[ "$refs" = "$(git for-each-ref && git rev-parse HEAD)" ] || fail "release.sh $* changed the repository"
}

refusals() {
	clone refusals
	local heading version
	heading=$(sed -n '/^## \(.*\) (unreleased)$/{s//\1/p;q}' CHANGELOG.md)
	version=v${heading:-1.0.0}
	refuses 2 'VERSION is missing'
	refuses 2 'is no version' 1.0.0
	refuses 2 'is no version' v2.0.0
	refuses 2 'more than one version' v1.0.0 v1.0.1
	refuses 2 'unknown option' -x "$version"
	refuses 2 'needs a value' -o
	refuses 2 'exclude each other' -n -b "$version"
	RELEASE_PLATFORMS=linux refuses 2 'write OS/ARCHITECTURE' "$version"
	refuses 1 'there is no tag' -b "$version"
	touch unknown
	refuses 1 'the tree is not clean' "$version"
	rm unknown
	echo >>README.md
	refuses 1 'the tree is not clean' "$version"
	git checkout -q README.md
	head -c 1048577 /dev/zero >program
	git add program
	commit 'a program'
	refuses 1 'the tree has program, which is larger' "$version"
	git reset -q --hard HEAD~
	mkdir dist
	touch dist/file
	refuses 1 'holds files' "$version"
	rm -r dist
	git checkout -q --detach
	refuses 1 'HEAD is on no branch' "$version"
	git checkout -q main
	git tag "inbox/$version"
	refuses 1 "the tag inbox/$version is there" "$version"
	git tag -d "inbox/$version" >/dev/null
	refuses 1 'the first heading of CHANGELOG.md' v1.99.0
	git tag v1.90.0
	refuses 1 'is not above v1.90.0' v1.89.9
	changelog '1.90.1 (unreleased)' ''
	commit 'a section without an entry'
	refuses 1 'has no entry' v1.90.1
	git reset -q --hard HEAD~
	changelog '1.90.1 (unreleased)' $'### Breaking\n\n- `Gone` is gone.'
	commit 'a break in a patch'
	refuses 1 'has a section Breaking' v1.90.1
}

dry() {
	clone dry
	refs=$(git for-each-ref && git rev-parse HEAD)
	CI=true RELEASE_PLATFORMS='linux/amd64 windows/386' bash scripts/release.sh -n -c true -o "$work/dist" </dev/null
	[ "$refs" = "$(git for-each-ref && git rev-parse HEAD)" ] || fail 'the dry run changed the repository'
	[ -z "$(git status --porcelain)" ] || fail "the dry run left files: $(git status --porcelain)"
	(cd "$work/dist" && sha256sum -c SHA256SUMS && ls -l)
}

# change SCRIPT FILE changes a file with sed.
change() {
	sed -i "$1" "$2"
	! git diff --quiet -- "$2" || fail "$2 has nothing to change for the gate: $1"
}

# breaks PARTS TEXT... asserts that these parts of compat.sh report breaks once what was changed
# is recorded, and takes the change back.
breaks() {
	local parts=$1 got=0 text
	shift
	! go test -run TestGolden . >/dev/null 2>&1 || fail "no test has noticed: $*"
	go test -run 'TestGolden(Requests|Retries|Defaults)$' . -update-golden >/dev/null || fail "the golden files can't be written"
	bash scripts/compat.sh $parts >"$work/out" 2>&1 || got=$?
	grep '^incompatible: ' "$work/out" || true
	[ "$got" = 1 ] || fail "compat.sh ended with $got, not 1: $(cat "$work/out")"
	for text; do
		grep -qxF "incompatible: $text" "$work/out" || fail "compat.sh does not say: $text"
	done
	changelog '9.0.0 (unreleased)' "$(printf '### Breaking\n'; sed -n 's/^incompatible: \(.*\)/- `\1`/p' "$work/out")"
	bash scripts/compat.sh $parts >/dev/null || fail "compat.sh fails for breaks that the changelog has: $*"
	git checkout -q .
	git clean -q -fd
}

gate() {
	clone gate
	git "${own[@]}" commit -q --allow-empty -m 'Release v8.0.0'
	git "${own[@]}" commit -q --allow-empty -m 'After it'
	printf 'a function is removed, a limit and a path are changed\n'
	git ls-files -z '*.go' | xargs -0 sed -i 's/\bDefaultRetryPolicy\b/RetryPolicyByDefault/'
	change 's/maxEventBody  *= 64 << 10/maxEventBody = 32 << 10/' eventhandler.go
	change 's|/head-events|/head_events|' webhooks.go
	breaks 'api behaviour' '.: DefaultRetryPolicy: removed' testdata/golden/{defaults,requests/Webhooks.List}.txt
	printf 'a default is changed, a header is added\n'
	change 's/MinWait: 200 \* time.Millisecond/MinWait: 300 * time.Millisecond/' options.go
	change 's/http.Header{"Accept": jsonHeader,/http.Header{"X-Added": {"1"}, "Accept": jsonHeader,/' internal/transport/call.go
	breaks behaviour testdata/golden/{defaults,requests/Heads.Get}.txt
}

# release ARG... runs release.sh for one platform in the clone in this folder.
release() {
	RELEASE_PLATFORMS=$(go env GOHOSTOS)/$(go env GOHOSTARCH) bash scripts/release.sh -o "$PWD.dist" "$@" v1.0.0
}

# killing WHEN COMMAND... runs a release in a process group of its own, which is killed
# when it runs a command that begins so.
killing() {
	local when=$1 name
	shift
	mkdir -p "$work/killing"
	for name in git mv chroot; do
		cat >"$work/killing/$name" <<-END
			#!/usr/bin/env bash
			group=\$(ps -o pgid= \$\$)
			end() { kill -9 -- -\${group// /}; }
			run() { "$(command -v "$name")" "\$@"; }
			case "$name \$* " in
			"$* "*) ;;
			*) run "\$@"; exit ;;
			esac
			case $when in
			before) end ;;
			after) run "\$@"; end ;;
			*) { sleep $when; end; } & run "\$@" ;;
			esac
		END
		chmod +x "$work/killing/$name"
	done
	(PATH=$work/killing:$PATH && export -f release && setsid bash -euc 'release -c true' >"$work/out" 2>&1 </dev/null) 2>/dev/null || true
}

# state prints the refs of the clone in this folder, its tree and the output folder.
state() {
	local tags dist=none
	tags=$(git tag | wc -l)
	[ ! -e "$PWD.dist" ] || dist=$(cd "$PWD.dist" && sha256sum -c SHA256SUMS >/dev/null 2>&1 && echo complete || echo PARTIAL)
	printf '%s tags, branch %s, %s changed files, output %s' "$tags" \
		"$(git log -1 --format=%s | sed 's/^Release v1.0.0$/released/; t; s/.*/as before/')" "$(git status --porcelain | wc -l)" "$dist"
}

# The last step does not wait for what compat.sh and installs.sh find; dry does.
last() {
	clone last
	changelog '1.0.0 (unreleased)' '- All of it.'
	printf 'exit 0\n' | tee scripts/compat.sh >scripts/installs.sh
	commit 'a release that is quick'
	git config user.name test
	git config user.email test@localhost
	local before when command got
	before=$(git rev-parse HEAD)

	printf 'a commit meanwhile\n'
	! release -c "git -C '$PWD' commit -q --allow-empty -m meanwhile" >"$work/out" 2>&1 || fail 'a branch that has moved is released'
	tail -n 1 "$work/out"
	grep -q 'has changed meanwhile' "$work/out" || fail "release.sh does not say that the branch has moved: $(cat "$work/out")"
	git reset -q --hard "$before"
	[ "$(state)" = '0 tags, branch as before, 0 changed files, output complete' ] || fail "after a refusal: $(state)"
	rm -r "$PWD.dist"

	while read -r when command; do
		killing "$when" "$command"
		got=$(state)
		printf 'killed %s %s: %s\n' "$when" "$command" "$got"
		case $got in
		'0 tags, branch as before, 0 changed files, output none') ;;
		'0 tags, branch as before, 0 changed files, output complete') ;;
		'6 tags, branch released, '*' changed files, output complete') git reset -q --hard ;;
		*) fail "a kill leaves what is neither as before nor complete: $(cat "$work/out")" ;;
		esac
		git tag | xargs -r git tag -d >/dev/null
		git reset -q --hard "$before"
		rm -rf "$PWD.dist"
	done <<<"${KILLS-"$kills"}"

	printf 'nothing is killed\n'
	release -c true >"$work/out" 2>&1 || fail "the release ended with an error: $(cat "$work/out")"
	[ "$(state)" = '6 tags, branch released, 0 changed files, output complete' ] || fail "after a release: $(state)"
	[ ! -e "$work/.release-last.dist" ] || fail 'the folder of a run that was killed is left'
	[ "$(git rev-parse 'v1.0.0^{commit}')" = "$(git rev-parse HEAD)" ] || fail 'the tag of the root is not on the branch'
	[ "$(git rev-parse 'inbox/v1.0.0~')" = "$(git rev-parse HEAD)" ] || fail 'the modules are not the child of the release'
	tail -n 1 "$work/out"
	grep -q '^	git push --atomic origin v1.0.0 inbox/v1.0.0 .* main$\|^	git push --atomic origin main v1.0.0 inbox/v1.0.0 ' "$work/out" || fail "no git push: $(cat "$work/out")"
}

kills='before mv -T
before git update-ref
after git update-ref'

parts=("$@")
[ $# -gt 0 ] || parts=(refusals dry gate last)
for part in "${parts[@]}"; do
	case $part in
	refusals | dry | gate | last)
		printf '\n== %s\n' "$part"
		("$part")
		;;
	*)
		printf 'usage: scripts/release_test.sh [refusals] [dry] [gate] [last]\n' >&2
		exit 2
		;;
	esac
done
