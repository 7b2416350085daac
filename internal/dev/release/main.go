// Release packs the programs of a release: an archive with licences and a
// description of its modules (CycloneDX 1.6) for each, and SHA256SUMS of them all.
//
//	release -version v1.2.3 -time 1767225600 -out DIR PROGRAM...
//
// A PROGRAM is GOOS/GOARCH/NAME=FILE, such as linux/amd64/headsctl=/tmp/headsctl. The
// licences come from the module cache, which must hold the modules of the program.
// The same programs, version and time make the same files.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "release:", err)
		}
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	version := flags.String("version", "", "version of the release, such as v1.2.3")
	seconds := flags.Int64("time", 0, "time of the release, in seconds since 1970")
	out := flags.String("out", "", "folder that the files are written to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *version == "" || *seconds == 0 || *out == "" || flags.NArg() == 0 {
		return errors.New("give -version, -time, -out and the programs")
	}
	var files []string
	for _, arg := range flags.Args() {
		p, err := parseProgram(arg, strings.TrimPrefix(*version, "v"), time.Unix(*seconds, 0).UTC())
		if err != nil {
			return err
		}
		made, err := p.pack(*out)
		if err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
		files = append(files, made...)
	}
	slices.Sort(files)
	return writeSums(*out, files)
}

// program is a built program and where it runs.
type program struct {
	name, goos, goarch string
	file               string
	version            string // without the v
	time               time.Time
}

func parseProgram(arg, version string, at time.Time) (program, error) {
	target, file, ok := strings.Cut(arg, "=")
	parts := strings.Split(target, "/")
	if !ok || file == "" || len(parts) != 3 || slices.Contains(parts, "") {
		return program{}, fmt.Errorf("%q is no program; write GOOS/GOARCH/NAME=FILE", arg)
	}
	return program{goos: parts[0], goarch: parts[1], name: parts[2], file: file, version: version, time: at}, nil
}

// base is the name of the program's files without their ending.
func (p program) base() string {
	return fmt.Sprintf("%s_%s_%s_%s", p.name, p.version, p.goos, p.goarch)
}

// pack writes the archive and the description of a program, and returns their names.
func (p program) pack(out string) ([]string, error) {
	info, err := p.read()
	if err != nil {
		return nil, err
	}
	licences, err := thirdParty(info)
	if err != nil {
		return nil, err
	}
	own, err := licenceOf(info.Main.Path, info.Main.Version)
	if err != nil {
		return nil, err
	}
	binary, err := os.ReadFile(p.file)
	if err != nil {
		return nil, err
	}
	executable, archive, write := p.name, p.base()+".tar.gz", writeTar
	if p.goos == "windows" {
		executable, archive, write = p.name+".exe", p.base()+".zip", writeZip
	}
	err = writeFile(filepath.Join(out, archive), func(f *os.File) error {
		return write(f, p.time, []entry{
			{executable, 0o755, binary},
			{"LICENSE", 0o644, own},
			{"THIRD_PARTY_LICENSES", 0o644, licences},
		})
	})
	if err != nil {
		return nil, err
	}
	description := p.base() + ".cdx.json"
	err = writeFile(filepath.Join(out, description), func(f *os.File) error { return p.describe(f, info) })
	return []string{archive, description}, err
}
