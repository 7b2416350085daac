package main

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// journalPath returns where the journal is, or "" for none, by what --journal says.
func journalPath(given, baseURL string, reads bool) (string, error) {
	switch {
	case given == "none", given == "" && reads:
		return "", nil
	case given != "":
		return given, nil
	}
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", usage("there is no home folder for the journal; give --journal FILE, or --journal none")
		}
		state = filepath.Join(home, ".local", "state")
	}
	folder := filepath.Join(state, "headsctl")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", usage("the folder of the journal can't be made: %w; give --journal FILE, or --journal none", err)
	}
	return filepath.Join(folder, journalName(baseURL)), nil
}

var unusual = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// journalName is the name of the journal for a base URL.
func journalName(baseURL string) string {
	u, err := url.Parse(strings.TrimRight(baseURL, "/"))
	if err != nil {
		u = &url.URL{Path: baseURL}
	}
	text := strings.ToLower(u.Host) + u.Path
	sum := sha256.Sum256([]byte(u.Scheme + "://" + text))
	return fmt.Sprintf("%s-%x.jsonl", strings.Trim(unusual.ReplaceAllString(text, "_"), "_"), sum[:4])
}
