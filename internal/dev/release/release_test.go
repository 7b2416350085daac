package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var at = time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)

var entries = []entry{{"headsctl", 0o755, []byte("program")}, {"LICENSE", 0o644, []byte("licence")}}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, want, got any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Errorf("%+v instead of %+v", got, want)
	}
}

func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%v does not say %q", err, text)
	}
}

// archived returns an archive of the entries, which are the same bytes each time.
func archived(t *testing.T, write func(io.Writer, time.Time, []entry) error) *bytes.Reader {
	t.Helper()
	var first, second bytes.Buffer
	noError(t, write(&first, at, entries))
	noError(t, write(&second, at, entries))
	equal(t, first.Bytes(), second.Bytes())
	return bytes.NewReader(first.Bytes())
}

func TestTarHasModesAndTheTimeOfTheRelease(t *testing.T) {
	compressed, err := gzip.NewReader(archived(t, writeTar))
	noError(t, err)
	equal(t, gzip.Header{OS: compressed.OS}, compressed.Header) // no time and no name
	archive := tar.NewReader(compressed)
	for _, want := range entries {
		header, err := archive.Next()
		noError(t, err)
		equal(t, []any{want.name, want.mode, at, 0, ""}, []any{header.Name, header.Mode, header.ModTime.UTC(), header.Uid, header.Uname})
	}
	_, err = archive.Next()
	equal(t, io.EOF, err)
}

func TestZipHasModesAndTheTimeOfTheRelease(t *testing.T) {
	r := archived(t, writeZip)
	archive, err := zip.NewReader(r, r.Size())
	noError(t, err)
	equal(t, len(entries), len(archive.File))
	for i, f := range archive.File {
		equal(t, []any{entries[i].name, entries[i].mode, at}, []any{f.Name, int64(f.Mode().Perm()), f.Modified.UTC()})
	}
}

func TestAModuleWithoutALicenceFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "example.com@v1.0.0")
	noError(t, os.Mkdir(dir, 0o755))
	write := func(name string) {
		noError(t, os.WriteFile(filepath.Join(dir, name), []byte("text of "+name+"\n"), 0o644))
	}
	for _, name := range []string{"README", "license.go", "NOTICE"} { // none of them is one
		write(name)
		_, err := findLicence(dir)
		wantError(t, err, "example.com@v1.0.0 has no licence")
	}
	write("LICENSE.md")
	text, err := findLicence(dir)
	noError(t, err)
	equal(t, "text of LICENSE.md\n\ntext of NOTICE\n\n", string(text))
	_, err = findLicence(filepath.Join(dir, "nowhere"))
	wantError(t, err, "")
}

func TestOnlyAReleasedProgramIsPacked(t *testing.T) {
	own, err := os.Executable()
	noError(t, err)
	out := t.TempDir()
	wantError(t, run([]string{"-version", "v1.0.0", "-time", "1767225600", "-out", out, "linux/amd64/headsctl=" + own}), "not v1.0.0")
	left, err := os.ReadDir(out)
	noError(t, err)
	equal(t, 0, len(left))
	for _, arg := range []string{"headsctl=" + own, "linux/amd64/headsctl", "linux//headsctl=x", "linux/amd64/headsctl="} {
		_, err := parseProgram(arg, "1.0.0", at)
		wantError(t, err, "")
	}
}

func TestSumsAreThoseOfSha256sum(t *testing.T) {
	dir := t.TempDir()
	noError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("abc"), 0o644))
	noError(t, writeSums(dir, []string{"a"}))
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	noError(t, err)
	equal(t, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n", string(sums))
}
