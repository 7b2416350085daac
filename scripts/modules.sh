# What the scripts of a release know of the modules. To be sourced.

module=github.com/headsapi/heads-go
nested=(inbox headsmcp headsotel headsredis cmd/headsctl) # with a version; so has the root
libraries=("" inbox headsmcp headsotel headsredis)        # folders; "" is the root
programs=(headsctl heads-emulator)                        # below cmd
version_form='^v[01]\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-rc\.[1-9][0-9]*)?$'
oasdiff_version=v1.33.0                                   # for compat.sh and suites.sh

# tags VERSION prints the tags of a release, that of the root first.
tags() {
	printf '%s\n' "$1" "${nested[@]/%//$1}"
}

# at FOLDER prints the path of the module in a folder.
at() {
	printf '%s\n' "$module${1:+/$1}"
}

# sorted prints the versions among the lines of its input, the highest last. sort -V
# puts a ~ before the end of a text, as a candidate comes before its release.
sorted() {
	{ grep -E "$version_form" || true; } | sed 's/-/~/' | sort -V | sed 's/~/-/'
}

# newest prints the highest version that the repository in this folder has a tag of.
newest() {
	git tag --list 'v*' | sorted | tail -n 1
}

# take REPO CACHE MODULE@VERSION... makes the go command take modules from the tags
# of a repository into a module cache, whose cache/download then is a module proxy.
take() {
	local repo=$1 cache=$2 folder
	shift 2
	folder=$(mktemp -d -p "$work")
	(
		cd "$folder"
		export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$repo.insteadOf" GIT_CONFIG_VALUE_0="https://$module"
		GOPROXY=direct GOMODCACHE=$cache GONOSUMDB=$module GOFLAGS=-modcacherw go mod download "$@"
	)
}

# proxied CACHE COMMAND... runs a command for which these modules come from a cache
# that take has filled, and all others from where they come otherwise.
proxied() {
	local cache=$1
	shift
	GOPROXY="file://$cache/cache/download,$(go env GOPROXY)" GONOSUMDB=$module GOFLAGS='-modcacherw -trimpath' GOWORK=off "$@"
}

# next_patch VERSION prints the patch version after it, and the release after a
# candidate.
next_patch() {
	local base=${1%%-*}
	if [ "$base" = "$1" ]; then
		base=${base%.*}.$((${base##*.} + 1))
	fi
	printf '%s\n' "$base"
}
