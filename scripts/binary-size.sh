#!/usr/bin/env bash
# Prints how much larger a program with one call of heads is than a program that
# makes the same call with net/http alone.
set -euo pipefail
# git's own variables and CDPATH could lead to another repository.
unset CDPATH $(env -i "PATH=$PATH" git rev-parse --local-env-vars)
cd "$(dirname "$0")/.."
dir=internal/size # inside the module, so that nothing has to be fetched
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/heads" "$dir/plain"
cat >"$dir/plain/main.go" <<'GO'
package main

import (
	"encoding/json"
	"net/http"
	"os"
)

func main() {
	resp, err := http.Get(os.Args[1])
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	var v map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil {
		panic(err)
	}
}
GO
cat >"$dir/heads/main.go" <<'GO'
package main

import (
	"context"
	"os"

	heads "github.com/headsapi/heads-go"
)

func main() {
	client, err := heads.New(os.Args[1], os.Args[2])
	if err != nil {
		panic(err)
	}
	if _, err := client.Heads.Get(context.Background(), os.Args[3]); err != nil {
		panic(err)
	}
}
GO
go build -ldflags '-s -w' -o "$dir/with" "./$dir/heads"
go build -ldflags '-s -w' -o "$dir/without" "./$dir/plain"
with=$(stat -c %s "$dir/with") without=$(stat -c %s "$dir/without")
printf 'net/http alone %d bytes, with heads %d bytes: +%d kB\n' "$without" "$with" $(((with - without) / 1000))
