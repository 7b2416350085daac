#!/usr/bin/env bash
# Installs every module and program of a release as a stranger would, from the tags of
# a repository, with an empty module cache.
#
#	scripts/installs.sh REPO VERSION
set -euo pipefail
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

step() { printf '\n== %s\n' "$*"; }

# stranger COMMAND... runs a command that knows the modules of the tags alone.
stranger() {
	GOMODCACHE=$work/modules GOBIN=$work/bin proxied "${cache:-$work/tags}" "$@"
}

# new NAME makes a new module in a folder of its own, and goes there.
new() {
	mkdir -p "$work/new/$1"
	cd "$work/new/$1"
	stranger go mod init "example.com/$1" 2>/dev/null
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
			d, err := headsredis.New(redis.NewClient(&redis.Options{}), "events:")
			fmt.Println(d != nil, err)
		}
	GO
	esac
}

# try FOLDER gets a library and runs the program that uses it.
try() {
	program_of "$1" >main.go
	stranger go get "$(at "$1")@$version"
	stranger go mod tidy -e 2>/dev/null # for what else the program imports
	stranger go run .
}

step "modules of $version from their tags"
cache=$work/tags
take "$repo" "$cache" "$module@$version" "${nested[@]/#/$module/}" 2>&1 | sed "s|file://$repo|the repository|" || exit 1

for folder in "${libraries[@]}"; do
	step "go get $(at "$folder")@$version"
	(new "get-${folder:-root}" && try "$folder")
done

for name in "${programs[@]}"; do
	step "go install $(at "cmd/$name")@$version"
	(cd "$work" && stranger go install "$(at "cmd/$name")@$version")
done
"$work/bin/headsctl" version
"$work/bin/heads-emulator" -version
