#!/usr/bin/env bash
# Installs every module and program of a release as a stranger would, from the tags of
# a repository, with an empty module cache.
#
#	scripts/installs.sh REPO VERSION
set -euo pipefail
# git's own variables and CDPATH could lead to another repository.
unset CDPATH $(env -i "PATH=$PATH" git rev-parse --local-env-vars)
here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/scripts/modules.sh"

if [ $# -ne 2 ] || ! [[ $2 =~ $version_form ]]; then
	printf 'usage: scripts/installs.sh REPO VERSION\n' >&2
	exit 2
fi
repo=$(cd "$1" && pwd)
version=$2

work=$(mktemp -d)
finish() {
	chmod -R u+w "$work"
	rm -rf "$work"
}
trap finish EXIT

fail() {
	printf 'installs.sh: %s\n' "$1" >&2
	exit 1
}

step() { printf '\n== %s\n' "$*"; }

# stranger COMMAND... runs a command that knows the modules of the tags alone.
stranger() {
	GOMODCACHE=$work/modules GOBIN=$work/bin proxied "$cache" "$@"
}

# new NAME makes a new module in a folder of its own, and goes there.
new() {
	mkdir -p "$work/new/$1"
	cd "$work/new/$1"
	go mod init "example.com/$1" 2>/dev/null
}

# program_of FOLDER prints a program that uses the library in a folder.
program_of() {
	case $1 in
	'') cat <<-GO ;;
		package main

		import (
			"fmt"

			heads "$module"
		)

		func main() {
			_, err := heads.New("https://api.example.com", "")
			fmt.Println(heads.Version, err != nil)
		}
	GO
	inbox) cat <<-GO ;;
		package main

		import (
			"context"
			"fmt"

			"$module/inbox"
			"$module/inbox/sqlite"
		)

		func main() {
			db, err := sqlite.Open("inbox.db")
			if err != nil {
				panic(err)
			}
			in, err := inbox.Open(context.Background(), db)
			if err != nil {
				panic(err)
			}
			fmt.Println(in.Close(context.Background()))
		}
	GO
	headsmcp) cat <<-GO ;;
		package main

		import (
			"context"
			"fmt"

			"$module/headsmcp"
		)

		func main() {
			_, err := headsmcp.AddTools(context.Background(), nil, nil)
			fmt.Println(err)
		}
	GO
	headsotel) cat <<-GO ;;
		package main

		import (
			"fmt"

			heads "$module"
			"$module/headsotel"
		)

		func main() {
			c, err := heads.New("https://api.example.com", "token", headsotel.Client())
			fmt.Println(c != nil, err)
		}
	GO
	headsredis) cat <<-GO ;;
		package main

		import (
			"fmt"

			"$module/headsredis"
			"github.com/redis/go-redis/v9"
		)

		func main() {
			d, err := headsredis.New(redis.NewClient(&redis.Options{}))
			fmt.Println(d != nil, err)
		}
	GO
	esac
}

# run FOLDER runs the program that uses a library.
run() {
	program_of "$1" >main.go
	stranger go mod tidy -e 2>/dev/null # adds what the program imports besides
	stranger go run .
}

step "modules of $version from their tags"
cache=$work/tags
mapfile -t all < <(printf '%s\n' "$module@$version" "${nested[@]/#/$module/}" | sed "s/@.*//; s/\$/@$version/")
take "$repo" "$cache" "${all[@]}" >/dev/null

for folder in "${libraries[@]}"; do
	step "go get $(at "$folder")@$version"
	new "get-${folder:-root}"
	stranger go get "$(at "$folder")@$version"
	run "$folder"
done

cd "$work"
for name in "${programs[@]}"; do
	step "go install $(at "cmd/$name")@$version"
	stranger go install "$(at "cmd/$name")@$version"
done
"$work/bin/headsctl" version
"$work/bin/heads-emulator" -version

# commands prints the lines with go get and go install of a page: those that stand
# alone, and those in backticks, each once.
commands() {
	{ grep -oE '^ *go (get|install) [^`]+|`go (get|install) [^`]+`' || true; } | sed 's/^[ `]*//; s/`$//' | awk '!seen[$0]++'
}

step 'the lines of README.md'
lines=0
while read -r line <&3; do
	lines=$((lines + 1))
	printf '$ %s\n' "$line"
	# The words of a page are data: no shell reads them, and no variable goes before go.
	if ! [[ $line =~ ^go\ (get|install)(\ [A-Za-z0-9@./_~-]+)+$ ]]; then
		fail "README.md has a line that is more than words: $line"
	fi
	read -ra words <<<"$line"
	new "line-$lines"
	stranger "${words[@]}"
done 3< <(git -C "$repo" show "$version:README.md" | commands)
[ "$lines" -ge 1 ] || fail 'README.md of the tag has no line with go get or go install'

newer=$(next_patch "$version")
step "each library beside the root in $newer"
git clone -q -n --no-hardlinks "$repo" "$work/newer"
git -C "$work/newer" -c user.name=heads-go -c user.email=heads-go@localhost tag -a -m "$newer" "$newer" "$version^{commit}"
take "$work/newer" "$cache" "$module@$newer" >/dev/null
for folder in "${libraries[@]:1}"; do
	new "newer-$folder"
	stranger go get "$(at "$folder")@$version" "$module@$newer"
	run "$folder"
	stranger go list -m "$module" | grep -F "$newer"
done

step "headsctl $version as a tool beside the root in $newer"
new tool
stranger go get "$module@$newer"
stranger go get -tool "$(at cmd/headsctl)@$version"
stranger go tool headsctl version

step 'go.mod and go.sum of the tags are complete'
for folder in "${nested[@]}"; do
	git -C "$work/newer" checkout -q "$folder/$version"
	(cd "$work/newer/$folder" && stranger go list -mod=readonly -deps ./... >/dev/null)
	printf '%s\n' "$folder"
done
printf '\neverything of %s installs\n' "$version"
