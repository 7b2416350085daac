package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"golang.org/x/mod/module"
)

// read returns what the program says of its modules. A program that was not made
// from released modules is refused: nobody else could make it again.
func (p program) read() (*buildinfo.BuildInfo, error) {
	info, err := buildinfo.ReadFile(p.file)
	if err != nil {
		return nil, err
	}
	if want := "v" + p.version; info.Main.Version != want {
		return nil, fmt.Errorf("the program is %s of %s, not %s", info.Main.Version, info.Main.Path, want)
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			return nil, fmt.Errorf("module %s is replaced by %s; build the program from its tag", m.Path, m.Replace.Path)
		}
	}
	slices.SortFunc(info.Deps, func(a, b *debug.Module) int { return strings.Compare(a.Path, b.Path) })
	return info, nil
}

// thirdParty returns the path, version and licence of Go and of each module in the
// program.
func thirdParty(info *buildinfo.BuildInfo) ([]byte, error) {
	var b bytes.Buffer
	add := func(path, version string, text []byte) {
		fmt.Fprintf(&b, "%s %s\n\n%s\n\n%s\n\n", path, version, bytes.TrimSpace(text), strings.Repeat("-", 80))
	}
	root, err := goEnv("GOROOT")
	if err != nil {
		return nil, err
	}
	text, err := findLicence(root)
	if err != nil {
		return nil, err
	}
	add("Go", info.GoVersion, text)
	for _, m := range info.Deps {
		if text, err = licenceOf(m.Path, m.Version); err != nil {
			return nil, err
		}
		add(m.Path, m.Version, text)
	}
	return b.Bytes(), nil
}

func goEnv(name string) (string, error) {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		return "", fmt.Errorf("go env %s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// licenceOf returns the licence of a module in the module cache.
func licenceOf(path, version string) ([]byte, error) {
	cache, err := goEnv("GOMODCACHE")
	if err != nil {
		return nil, err
	}
	escaped, err := module.EscapePath(path)
	if err != nil {
		return nil, err
	}
	version, err = module.EscapeVersion(version)
	if err != nil {
		return nil, err
	}
	return findLicence(filepath.Join(cache, escaped+"@"+version))
}

// findLicence returns the texts of the licence and the notices in a folder.
func findLicence(dir string) ([]byte, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var text []byte
	found := false
	for _, f := range files {
		name := strings.ToUpper(f.Name())
		licence := strings.HasPrefix(name, "LICENSE") || strings.HasPrefix(name, "LICENCE") || strings.HasPrefix(name, "COPYING") || name == "UNLICENSE"
		if f.IsDir() || strings.HasSuffix(name, ".GO") || !licence && name != "NOTICE" && name != "PATENTS" {
			continue
		}
		found = found || licence
		one, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		text = append(append(text, bytes.TrimSpace(one)...), "\n\n"...)
	}
	if !found {
		return nil, fmt.Errorf("%s has no licence: no file LICENSE, LICENCE, COPYING or UNLICENSE", filepath.Base(dir))
	}
	return text, nil
}

// describe writes the modules of the program as CycloneDX 1.6.
func (p program) describe(w io.Writer, info *buildinfo.BuildInfo) error {
	main := component(cdx.ComponentTypeApplication, info.Main.Path, info.Main.Version)
	main.Name = p.name
	components := []cdx.Component{component(cdx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"))}
	needs := []string{components[0].BOMRef}
	for _, m := range info.Deps {
		c := component(cdx.ComponentTypeLibrary, m.Path, m.Version)
		components = append(components, c)
		needs = append(needs, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: p.time.Format(time.RFC3339),
		Component: &main,
		Properties: &[]cdx.Property{
			{Name: "go:os", Value: p.goos},
			{Name: "go:arch", Value: p.goarch},
		},
	}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &needs}}
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
}

func component(kind cdx.ComponentType, path, version string) cdx.Component {
	purl := "pkg:golang/" + path + "@" + version
	return cdx.Component{BOMRef: purl, Type: kind, Name: path, Version: version, PackageURL: purl}
}
