#!/usr/bin/env bash
# Compares the tree with the last release: does it keep what that promised?
#
#	scripts/compat.sh [api] [behaviour] [consumers]
#
# The last release is the newest tag v* before HEAD or, without tags, the newest
# commit "Release vX.Y.Z". Each break is a line "incompatible: TEXT". It is allowed if
# the changelog's section of this release has an item under "### Breaking" with TEXT in
# backticks. Exit 0: nothing else breaks, or there is no release yet; 1: something
# breaks; 2: the trees could not be compared.
set -euo pipefail
# git's own variables and CDPATH could lead to another repository.
unset CDPATH $(env -i "PATH=$PATH" git rev-parse --local-env-vars)
cd "$(dirname "$0")/.."
root=$PWD
. scripts/modules.sh

apidiff_version=v0.0.0-20250819193227-8b4c13bb791b

parts=("$@")
[ $# -gt 0 ] || parts=(api behaviour consumers)
for part in "${parts[@]}"; do
	case $part in
	api | behaviour | consumers) ;;
	*)
		printf 'compat.sh: unknown part "%s"\nusage: scripts/compat.sh [api] [behaviour] [consumers]\n' "$part" >&2
		exit 2
		;;
	esac
done

impossible() {
	printf 'compat.sh: %s\n' "$1" >&2
	[ ! -s "$work/log" ] || tail -n 20 "$work/log" >&2
	exit 2
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
touch "$work/log" "$work/breaks"

# last_release prints the commit of the last release and its version.
last_release() {
	local tag
	tag=$(git tag --merged HEAD --no-contains HEAD --list 'v*' | sorted | tail -n 1)
	if [ -n "$tag" ]; then
		printf '%s %s\n' "$(git rev-parse "$tag^{commit}")" "$tag"
		return
	fi
	git log --format='%H %s' -E --grep='^Release v[0-9]' HEAD | sed -n "/^$(git rev-parse HEAD) /d; s/^\([0-9a-f]*\) Release \(v[^ ]*\)$/\1 \2/p" | sed -n 1p
}

# allowed prints the items under Breaking of the release that the tree prepares.
allowed() {
	awk -v last="## ${version#v}" '
		/^## / { if (n++ || index($0, last " ") == 1 || $0 == last) exit; next }
		/^### / { breaking = /^### Breaking/; next }
		breaking
	' CHANGELOG.md
}

found() { printf '%s\n' "$1" >>"$work/breaks"; }

quietly() { "$@" >"$work/log" 2>&1; }

api() {
	GOBIN=$work/bin GOTOOLCHAIN=auto quietly go install "golang.org/x/exp/cmd/apidiff@$apidiff_version" || impossible 'apidiff can not be installed'
	GOBIN=$work/bin GOTOOLCHAIN=auto quietly go install "github.com/oasdiff/oasdiff@$oasdiff_version" || impossible 'oasdiff can not be installed'
	local folder line
	for folder in "${libraries[@]}"; do
		[ -f "$old/${folder:-.}/go.mod" ] || continue
		if [ ! -f "${folder:-.}/go.mod" ]; then
			found "$folder: module removed"
			continue
		fi
		(cd "$old/${folder:-.}" && quietly "$work/bin/apidiff" -m -w "$work/export" "$(at "$folder")") || impossible "$(at "$folder") of $version can not be loaded"
		(cd "./${folder:-.}" && "$work/bin/apidiff" -m -incompatible "$work/export" "$(at "$folder")" >"$work/diff" 2>"$work/log") || impossible "$(at "$folder") can not be loaded"
		while read -r line; do
			found "${folder:-.}: $line"
		done < <(sed -n '/^- Version: value changed/d; s/^- //p' "$work/diff") # each release has another
	done
	"$work/bin/oasdiff" breaking -f singleline "$old/headstest/openapi.json" headstest/openapi.json >"$work/diff" 2>"$work/log" || impossible 'headstest/openapi.json can not be compared'
	while read -r line; do
		found "headstest/openapi.json: $line"
	done < <(sed -n 's/^\(error\|warning\) at [^,]*, in \(.*[^ ]\) \[[a-z-]*\]\. *$/\2/p' "$work/diff" | sed 's/^API //')
}

# behaviour finds the recorded answers, defaults and formats of the last release that
# differ. New files are no break, nor are lines that are added, such as a new flag or
# key, except in requests and formats.
behaviour() {
	local deleted path
	while read -r _ deleted path; do
		case $path in
		*testdata/golden/requests/* | *testdata/formats/*) found "$path" ;;
		*) [ "$deleted" = 0 ] || found "$path" ;;
		esac
	done < <(git diff --no-renames --numstat --diff-filter=DMT "$released" -- ':(glob)**/testdata/golden/**' ':(glob)**/testdata/formats/**')
}

# consumers builds the nested modules and examples of the last release with the tree.
consumers() {
	local new=$work/new mod folder
	mkdir "$new"
	git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' path; do [ -e "$path" ] && printf '%s\0' "$path"; done | tar --null -T - -cf - | tar -xf - -C "$new"
	for mod in "${nested[@]}"; do
		folder=$old/$mod
		[ -f "$folder/go.mod" ] || continue
		(cd "$folder" && go mod edit -replace "$module=$new")
		consumer "$mod" "$folder" ./...
	done
	rm -rf "$new/examples"
	cp -R "$old/examples" "$new/examples"
	consumer examples "$new" ./examples/...
	if [ -d "$new/examples/quickstart" ] && ! (cd "$new" && quietly go run ./examples/quickstart); then
		found "examples/quickstart: $(tail -n 1 "$work/log")"
	fi
}

# consumer NAME FOLDER PACKAGES vets packages and runs their examples.
consumer() {
	local line
	if ! (cd "$2" && GOFLAGS=-mod=mod quietly go vet "$3"); then
		grep -E '\.go:[0-9]+:' "$work/log" >"$work/lines" || tail -n 1 "$work/log" >"$work/lines"
		while read -r line; do
			found "$1: ${line#vet: }"
		done <"$work/lines"
		return
	fi
	if ! (cd "$2" && GOFLAGS=-mod=mod quietly go test -run '^Example' "$3"); then
		while read -r line; do
			found "$1: $line"
		done < <(sed -n 's/^--- FAIL: \([^ ]*\).*/\1/p' "$work/log" | grep . || tail -n 1 "$work/log")
	fi
}

read -r released version < <(last_release) || true
if [ -z "${released-}" ]; then
	echo 'there is no release to compare with'
	exit
fi
old=$work/old
mkdir "$old"
git archive "$released" | tar -xf - -C "$old"
printf 'compared with %s\n' "$version"
for part in "${parts[@]}"; do
	"$part"
done

allowed >"$work/allowed"
status=0
while read -r text; do
	if ! grep -qF -- "\`$text\`" "$work/allowed"; then
		printf 'incompatible: %s\n' "$text"
		status=1
	fi
done <"$work/breaks"
exit $status
