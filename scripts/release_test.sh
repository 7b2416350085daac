#!/usr/bin/env bash
# Tests release.sh and compat.sh in clones of HEAD: what they refuse, a dry run for two
# platforms, and that the gate fails for a broken promise.
#
#	scripts/release_test.sh [refusals] [dry] [gate]
set -euo pipefail
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
	CI=true RELEASE_PLATFORMS='linux/amd64 windows/arm64' bash scripts/release.sh -n -c true -o "$work/dist" </dev/null
	[ "$refs" = "$(git for-each-ref && git rev-parse HEAD)" ] || fail 'the dry run changed the repository'
	[ -z "$(git status --porcelain)" ] || fail "the dry run left files: $(git status --porcelain)"
	(cd "$work/dist" && sha256sum -c SHA256SUMS && ls -l)
}

# change SCRIPT FILE changes a file with sed.
change() {
	sed -i "$1" "$2"
	! git diff --quiet -- "$2" || fail "$2 has nothing to change for the gate: $1"
}

# breaks TEXT asserts that compat.sh reports a break once what was changed is recorded,
# and takes the change back.
breaks() {
	local got=0
	if [ "$1" = "${1#.: }" ]; then # not a break of the API
		! go test -run TestGolden . >/dev/null 2>&1 || fail "no test has noticed: $1"
		go test -run 'TestGolden(Requests|Retries|Defaults)$' . -update-golden >/dev/null || fail "the golden files can't be written"
	fi
	bash scripts/compat.sh api behaviour >"$work/out" 2>&1 || got=$?
	grep '^incompatible: ' "$work/out" || true
	[ "$got" = 1 ] || fail "compat.sh ended with $got, not 1: $(cat "$work/out")"
	grep -qxF "incompatible: $1" "$work/out" || fail "compat.sh does not say: $1"
	changelog '9.0.0 (unreleased)' "$(printf '### Breaking\n'; sed -n 's/^incompatible: \(.*\)/- `\1`/p' "$work/out")"
	bash scripts/compat.sh api behaviour >/dev/null || fail "compat.sh fails for a break that the changelog has: $1"
	git checkout -q .
	git clean -q -fd
}

gate() {
	clone gate
	git "${own[@]}" commit -q --allow-empty -m 'Release v8.0.0'
	git "${own[@]}" commit -q --allow-empty -m 'After it'
	printf 'a function is removed\n'
	git ls-files -z '*.go' | xargs -0 sed -i 's/\bDefaultRetryPolicy\b/RetryPolicyByDefault/'
	breaks '.: DefaultRetryPolicy: removed'
	printf 'a default is changed\n'
	change 's/MinWait: 200 \* time.Millisecond/MinWait: 300 * time.Millisecond/' retry.go
	breaks 'testdata/golden/defaults.txt'
	printf 'a path is changed\n'
	change 's|/head-events|/head_events|' webhooks.go
	breaks 'testdata/golden/requests/Webhooks.List.txt'
	printf 'a header is added\n'
	change 's/http.Header{"Accept": jsonHeader,/http.Header{"X-Added": {"1"}, "Accept": jsonHeader,/' call.go
	breaks 'testdata/golden/requests/Heads.Get.txt'
	printf 'a limit is changed\n'
	change 's/maxEventBody  *= 64 << 10/maxEventBody = 32 << 10/' eventhandler.go
	breaks 'testdata/golden/defaults.txt'
}

parts=("$@")
[ $# -gt 0 ] || parts=(refusals dry gate)
for part in "${parts[@]}"; do
	case $part in
	refusals | dry | gate)
		printf '\n== %s\n' "$part"
		("$part")
		;;
	*)
		printf 'usage: scripts/release_test.sh [refusals] [dry] [gate]\n' >&2
		exit 2
		;;
	esac
done
