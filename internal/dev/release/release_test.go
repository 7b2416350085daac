package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var at = time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)

var entries = []entry{{"headsctl", 0o755, []byte("program")}, {"LICENSE", 0o644, []byte("licence")}}

// The same entries make the same bytes, and an archive has no time but the release's.
func TestArchivesAreDeterministic(t *testing.T) {
	for name, write := range map[string]func(io.Writer, time.Time, []entry) error{"tar": writeTar, "zip": writeZip} {
		var first, second bytes.Buffer
		if err := write(&first, at, entries); err != nil {
			t.Fatal(err)
		}
		if err := write(&second, at, entries); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s: two archives of the same entries differ", name)
		}
	}
}

func TestTarHasModesAndTheTimeOfTheRelease(t *testing.T) {
	var b bytes.Buffer
	if err := writeTar(&b, at, entries); err != nil {
		t.Fatal(err)
	}
	compressed, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	if !compressed.ModTime.IsZero() || compressed.Name != "" {
		t.Errorf("the header has time %v and name %q", compressed.ModTime, compressed.Name)
	}
	archive := tar.NewReader(compressed)
	for _, want := range entries {
		header, err := archive.Next()
		if err != nil {
			t.Fatal(err)
		}
		if header.Name != want.name || header.Mode != want.mode || !header.ModTime.Equal(at) || header.Uid != 0 || header.Uname != "" {
			t.Errorf("%+v is not %s of nobody", header, want.name)
		}
	}
	if _, err := archive.Next(); err != io.EOF {
		t.Errorf("after the entries: %v", err)
	}
}

func TestZipHasModesAndTheTimeOfTheRelease(t *testing.T) {
	var b bytes.Buffer
	if err := writeZip(&b, at, entries); err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if len(archive.File) != len(entries) {
		t.Fatalf("%d files", len(archive.File))
	}
	for i, f := range archive.File {
		if f.Name != entries[i].name || int64(f.Mode().Perm()) != entries[i].mode || !f.Modified.Equal(at) {
			t.Errorf("%s %v %v is not %+v", f.Name, f.Mode(), f.Modified, entries[i])
		}
	}
}

func TestAModuleWithoutALicenceFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "example.com@v1.0.0")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("text of "+name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"README", "license.go", "NOTICE"} { // none of them is one
		write(name)
		if _, err := findLicence(dir); err == nil || !strings.Contains(err.Error(), "example.com@v1.0.0 has no licence") {
			t.Errorf("with %s alone: %v", name, err)
		}
	}
	write("LICENSE.md")
	text, err := findLicence(dir)
	if err != nil || string(text) != "text of LICENSE.md\n\ntext of NOTICE\n\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := findLicence(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a module that is not there has a licence")
	}
}

func TestOnlyAReleasedProgramIsPacked(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	err = run([]string{"-version", "v1.0.0", "-time", "1767225600", "-out", out, "linux/amd64/headsctl=" + own})
	if err == nil || !strings.Contains(err.Error(), "not v1.0.0") {
		t.Errorf("a program that was built from a tree: %v", err)
	}
	left, err := os.ReadDir(out)
	if err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
	for _, arg := range []string{"headsctl=" + own, "linux/amd64/headsctl", "linux//headsctl=x", "linux/amd64/headsctl="} {
		if _, err := parseProgram(arg, "1.0.0", at); err == nil {
			t.Errorf("%s is a program", arg)
		}
	}
}

func TestSumsAreThoseOfSha256sum(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("abc"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := writeSums(dir, []string{"a"}); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if want := "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n"; err != nil || string(sums) != want {
		t.Errorf("%q, %v", sums, err)
	}
}
