// Package goldens compares what tests make with files that show what a release
// promises: the bytes that are sent, the defaults, the flags. A changed file is a break
// that scripts/compat.sh reports. The flag -update-golden writes the files.
//
// It is for tests alone.
package goldens

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update-golden", false, "write the files of testdata/golden instead of comparing with them")

const folder = "testdata/golden"

// Compare compares got with a file of testdata/golden, or writes the file.
func Compare(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join(folder, filepath.FromSlash(name))
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update-golden to write it", err)
	}
	if string(want) != got {
		t.Errorf("%s is no longer what was recorded, on which users rely.\nrecorded:\n%s\nnow:\n%s", path, want, got)
	}
}

// Only asserts that a folder of testdata/golden has no other files than these. What is
// no longer made must be removed by hand, since that is a break.
func Only(t testing.TB, dir string, names ...string) {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(folder, dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !slices.Contains(names, f.Name()) {
			t.Errorf("%s/%s/%s is no longer made", folder, dir, f.Name())
		}
	}
}

// Defaults compares the values with defaults.txt, one line each, sorted by name.
func Defaults(t testing.TB, values map[string]any) {
	t.Helper()
	var lines []string
	for name, value := range values {
		lines = append(lines, fmt.Sprintf("%s: %v\n", name, value))
	}
	slices.Sort(lines)
	Compare(t, "defaults.txt", strings.Join(lines, ""))
}
