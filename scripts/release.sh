#!/usr/bin/env bash
# Prepares a release: commits, tags and artefacts. It pushes nothing.
#
#	scripts/release.sh [-n] [-b] [-c COMMAND] [-o DIR] VERSION
#
#	-n          dry run: everything but the tags and the commit in this repository.
#	            VERSION may be left out: the changelog's, or else the next patch.
#	-b          only the artefacts, of tags that exist
#	-c COMMAND  what proves the tree; default: bash .ci/run
#	-o DIR      where the artefacts go; default: dist
#
# VERSION is vX.Y.Z or vX.Y.Z-rc.N, below v2. RELEASE_PLATFORMS lists the platforms to
# build for, such as "linux/amd64 darwin/arm64".
#
# A release is two commits: "Release vX.Y.Z" on the branch, with the tag of the root,
# and "Modules of vX.Y.Z", its child on no branch, with the tags of the nested modules.
# They lack the replace directives, with which go install refuses a module.
# Whatever fails before the last step leaves the repository as it was. That step sets
# the tags and the branch at once, and then the files; if a kill prevents the latter,
# git reset --hard makes up for it.
set -euo pipefail
# git's own variables and CDPATH could lead to another repository.
unset CDPATH $(env -i "PATH=$PATH" git rev-parse --local-env-vars)
cd "$(dirname "$0")/.."
root=$PWD
. scripts/modules.sh

usage() {
	printf 'release.sh: %s (usage: scripts/release.sh [-n] [-b] [-c COMMAND] [-o DIR] VERSION)\n' "$1" >&2
	exit 2
}

refuse() {
	printf 'release.sh: %s\n' "$1" >&2
	exit 1
}

step() { printf '\n== %s\n' "$*"; }

dry='' artefacts_only='' command='bash .ci/run' out=dist
while getopts :nbc:o: option; do
	case $option in
	n) dry=yes ;;
	b) artefacts_only=yes ;;
	c) command=$OPTARG ;;
	o) out=$OPTARG ;;
	:) usage "-$OPTARG needs a value" ;;
	*) usage "unknown option -$OPTARG" ;;
	esac
done
shift $((OPTIND - 1))
[ $# -le 1 ] || usage "more than one version: $*"
version=${1-}
[ -z "$dry" ] || [ -z "$artefacts_only" ] || usage '-n and -b exclude each other'
[ -n "$version" ] || [ -n "$dry" ] || usage 'VERSION is missing'
[ -z "$version" ] || [[ $version =~ $version_form ]] || usage "\"$version\" is no version; write vX.Y.Z or vX.Y.Z-rc.N, below v2"
platforms=${RELEASE_PLATFORMS-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}
[ -n "${platforms// /}" ] || usage 'RELEASE_PLATFORMS names no platform, such as linux/amd64'
for platform in $platforms; do
	[[ $platform =~ ^[a-z0-9]+/[a-z0-9]+$ ]] || usage "RELEASE_PLATFORMS has \"$platform\"; write OS/ARCHITECTURE, such as linux/amd64"
done
case $out in /*) ;; *) out=$root/$out ;; esac

# first_heading and the others read a changelog. Nothing in a pipe ends before it has read
# all of its input: what writes to it would fail.
first_heading() { sed -n '/^## /{s///p;q}' "$1"; }
first_section() { awk '/^## / { if (++n > 1) exit; next } n' "$1"; }
above() { [ "$1" != "$2" ] && [ "$(printf '%s\n' "$1" "$2" | sorted | tail -n 1)" = "$1" ]; }

# check_tree refuses a tree that can't be released.
check_tree() {
	local changed large last heading
	changed=$(git status --porcelain | sed -n 1p)
	[ -z "$changed" ] || refuse "the tree is not clean (${changed# }); commit, remove or ignore what has changed"
	large=$(git ls-tree -r -l HEAD | awk '$4 > 1048576 && !n++ { sub(/.*\t/, ""); print }')
	[ -z "$large" ] || refuse "the tree has $large, which is larger than 1 MiB, and everyone who installs would download it; remove it"
	last=$(newest)
	heading=$(first_heading CHANGELOG.md)
	if [ -z "$version" ]; then
		case $heading in
		*' (unreleased)') version=v${heading%' (unreleased)'} ;;
		*) version=$(next_patch "${last:-v0.0.0}") ;;
		esac
		[[ $version =~ $version_form ]] || refuse "the first heading of CHANGELOG.md is \"## $heading\", which has no version below v2; write \"## X.Y.Z (unreleased)\""
	fi
	local tag
	while read -r tag; do
		! git rev-parse -q --verify "refs/tags/$tag" >/dev/null || refuse "the tag $tag is there; choose a version above it"
	done < <(tags "$version")
	[ -z "$last" ] || above "$version" "$last" || refuse "$version is not above $last, the newest tag; choose a higher version"
	if [ -n "$dry" ] && [[ $heading != *' (unreleased)' ]]; then
		return # the dry run writes a section of its own
	fi
	[ "$heading" = "${version#v} (unreleased)" ] || refuse "the first heading of CHANGELOG.md is \"## $heading\"; write \"## ${version#v} (unreleased)\" for $version"
	first_section CHANGELOG.md | grep '^[-*] ' >/dev/null || refuse "the section ${version#v} of CHANGELOG.md has no entry; say what changes for users"
	check_breaking
}

# check_breaking refuses a break of a promise where the version promises none. Below
# 1.0 a break takes the next minor version, later the next major one.
check_breaking() {
	first_section CHANGELOG.md | grep '^### Breaking' >/dev/null || return 0
	local released
	released=$(git tag --list 'v*' | sorted | sed '/-/d' | tail -n 1)
	[ -n "$released" ] || return 0
	local raised
	if [[ $released == v0.* ]]; then raised=${released%.*}; else raised=${released%%.*}; fi
	[[ $version != "$raised".* ]] || refuse "CHANGELOG.md has a section Breaking, and $version promises not to break what $released has; raise the $([[ $released == v0.* ]] && echo minor || echo major) version"
}

# set_version writes the version where the tree has it.
set_version() {
	local today heading
	today=$(date -u +%Y-%m-%d)
	heading=$(first_heading CHANGELOG.md)
	if [[ $heading == *' (unreleased)' ]]; then
		sed -i "0,/^## .*/s//## ${version#v} ($today)/" CHANGELOG.md
	else
		sed -i "0,/^## /s//## ${version#v} ($today)\n\n- A dry run.\n\n## /" CHANGELOG.md
	fi
	sed -i "s/^const Version = \".*\"/const Version = \"${version#v}\"/" "$(grep -l '^const Version = ' ./*.go)"
	local folder
	for folder in "${nested[@]}"; do
		go mod edit -require "$module@$version" "$folder/go.mod"
	done
}

# tag_modules makes the second commit and the tags of the nested modules.
tag_modules() {
	local cache=$work/sums folder
	git checkout -q --detach
	take "$PWD" "$cache" "$module@$version"
	for folder in "${nested[@]}"; do
		(
			cd "$folder"
			go mod edit -dropreplace "$module"
			GOMODCACHE=$work/modules proxied "$cache" go mod download "$module@$version"
		)
		git add "$folder/go.mod" "$folder/go.sum"
	done
	git commit -q -m "Modules of $version" -m "Without the replace directives of the branch, so that each installs from its tag."
	for folder in "${nested[@]}"; do
		git tag -a -m "$folder $version" "$folder/$version"
	done
}

# build_artefacts CLONE makes the files of the tags, all or none.
build_artefacts() {
	local clone=$1 cache=$work/tags platform name args=() at_time
	local go_version
	go_version=$(git -C "$clone" for-each-ref --format='%(contents)' "refs/tags/$version" | sed -n 's/^Built with \(go.*\)\.$/\1/p')
	[ "$(go env GOVERSION)" = "$go_version" ] ||
		refuse "$version was built with ${go_version:-no Go that its tag names}, this is $(go env GOVERSION); set GOTOOLCHAIN=$go_version, or the bits differ"
	at_time=$(git -C "$clone" log -1 --format=%ct "$version^{commit}")
	take "$clone" "$cache" "$module@$version" "$module/cmd/headsctl@$version"
	for platform in $platforms; do
		for name in "${programs[@]}"; do
			args+=("$platform/$name=$(build "$cache" "$platform" "$name")")
		done
	done
	staged=$(dirname "$out")/.release-$(basename "$out")
	rm -rf "$staged" # of a run that was killed
	mkdir -p "$(dirname "$out")"
	mkdir -m 755 "$staged"
	(cd "$root/internal/dev/release" && GOWORK=off go build -o "$work/pack" .)
	GOMODCACHE=$work/modules "$work/pack" -version "$version" -time "$at_time" -out "$staged" "${args[@]}"
	run_alone
	mv -T "$staged" "$out"
	staged=''
}

# build CACHE PLATFORM NAME builds a program as anyone would, and prints its path.
build() {
	local cache=$1 platform=$2 name=$3 bin=$work/bin/$2
	local folder=${bin}/go
	mkdir -p "$folder"
	(
		cd "$folder"
		export GOOS=${platform%/*} GOARCH=${platform#*/} CGO_ENABLED=0 GOPATH=$bin GOMODCACHE=$work/modules
		unset GOBIN
		proxied "$cache" go install -trimpath -ldflags='-s -w' "$module/cmd/$name@$version"
	)
	find "$bin/bin" -type f \( -name "$name" -o -name "$name.exe" \)
}

# run_alone runs the programs for this machine in a root folder that is empty but for
# them.
run_alone() {
	local name archive empty platform
	platform=$(go env GOOS)_$(go env GOARCH)
	[ "$(go env GOOS)" = linux ] || return 0
	for name in "${programs[@]}"; do
		archive=$staged/${name}_${version#v}_$platform.tar.gz
		[ -f "$archive" ] || continue
		empty=$(mktemp -d -p "$work")
		tar -xzf "$archive" -C "$empty" "$name"
		if [ "$(id -u)" = 0 ]; then
			chroot "$empty" "/$name" $([ "$name" = headsctl ] && echo version || echo -version)
		else
			unshare -r chroot "$empty" "/$name" $([ "$name" = headsctl ] && echo version || echo -version)
		fi
	done
}

work=$(mktemp -d)
staged=''
finish() {
	rm -rf "$work" ${staged:+"$staged"}
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

[ ! -e "$out" ] || [ -z "$(ls -A "$out" 2>&1)" ] || refuse "$out holds files; remove it, or choose another folder with -o"

if [ -n "$artefacts_only" ]; then
	while read -r tag; do
		git rev-parse -q --verify "refs/tags/$tag" >/dev/null || refuse "there is no tag $tag; without -b the release is prepared"
	done < <(tags "$version")
	step "artefacts of $version"
	git clone -q --no-hardlinks "$root" "$work/clone"
	build_artefacts "$work/clone"
	printf 'the artefacts are in %s\n' "$out"
	exit
fi

branch=$(git symbolic-ref -q --short HEAD) || [ -n "$dry" ] || refuse 'HEAD is on no branch; switch to the branch that is released'
check_tree
before=$(git rev-parse HEAD)

step "$version in a clone"
git clone -q --no-hardlinks "$root" "$work/clone"
cd "$work/clone"
git checkout -q -B "${branch:-release}" "$before"
git config user.name "$(git -C "$root" config user.name || echo heads-go)"
git config user.email "$(git -C "$root" config user.email || echo heads-go@localhost)"
set_version
git commit -q -a -m "Release $version"
released=$(git rev-parse HEAD)

step "$command"
(trap - EXIT && bash -c "$command")
step scripts/compat.sh
bash scripts/compat.sh
git reset -q --hard
git clean -q -fd

step 'tags and the modules'
git tag -a -m "$version" -m "Built with $(go env GOVERSION)." "$version"
tag_modules

step 'installs from the tags'
bash scripts/installs.sh "$PWD" "$version"

step "artefacts in $out"
build_artefacts "$PWD"

cd "$root"
if [ -n "$dry" ]; then
	printf '\n%s would be released; a dry run sets no tags\n' "$version"
	exit
fi
step 'tags and branch'
trap '' INT TERM HUP # this is about to be complete
tags "$version" | sed 's|^|refs/tags/|' | xargs git fetch -q --no-tags --no-write-fetch-head "$work/clone"
git update-index -q --refresh || true
{ [ "$(git symbolic-ref -q --short HEAD) $(git rev-parse HEAD)" = "$branch $before" ] && git read-tree -n -m -u "$before" "$released"; } ||
	refuse "the branch or a file of the release has changed meanwhile; undo that or commit it, remove $out, and start again"
{
	echo start
	while read -r tag; do
		printf 'create refs/tags/%s %s\n' "$tag" "$(git -C "$work/clone" rev-parse "refs/tags/$tag")"
	done < <(tags "$version")
	printf 'update refs/heads/%s %s %s\nprepare\ncommit\n' "$branch" "$released" "$before"
} | git update-ref -m "release: $version" --stdin >/dev/null
git read-tree -m -u "$before" "$released"
printf '\n%s is ready. To publish it:\n\n\tgit push --atomic origin %s' "$version" "$branch"
tags "$version" | tr '\n' ' ' | sed 's/^/ /; s/ $/\n/'
