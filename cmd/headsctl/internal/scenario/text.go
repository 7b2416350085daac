package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
)

// maxShown is how many characters of a value a failure shows.
const maxShown = 600

// shown returns a text from outside as one short line, without what a terminal obeys.
func shown(text string) string { return show.Clip(text, maxShown) }

// shownValue returns a value of a file as failures show it.
func shownValue(v *yamltext.Value) string {
	document, err := v.AppendJSON(nil)
	if err != nil {
		return shown(v.Text)
	}
	return shown(string(document))
}

// shownJSON returns a decoded value as failures show it.
func shownJSON(v any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err.Error()
	}
	return shown(b.String())
}

// decodeJSON decodes a document with the digits of its numbers.
func decodeJSON(document []byte) (v any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(document[decoder.InputOffset():])) > 0 {
		return nil, errTrailing
	}
	return v, nil
}

var errTrailing = errors.New("there is more than one JSON document")

func relativeTo(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// pathCause returns the error of a file without its name.
func pathCause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// portOf returns the port of a URL.
func portOf(base string) string {
	scheme, rest, _ := strings.Cut(base, "://")
	host, _, _ := strings.Cut(rest, "/")
	if _, port, err := net.SplitHostPort(host); err == nil {
		return port
	}
	return map[string]string{"http": "80", "https": "443"}[scheme]
}

// durationOf returns a time such as 250ms. Without one it returns the default.
func durationOf(v *yamltext.Value, otherwise time.Duration) time.Duration {
	if !v.IsGiven() {
		return otherwise
	}
	d, err := time.ParseDuration(v.Text)
	if err != nil {
		return otherwise
	}
	return d
}

// numberOf returns a whole number, or the default.
func numberOf(v *yamltext.Value, otherwise int) int {
	if !v.IsGiven() {
		return otherwise
	}
	n, err := strconv.Atoi(v.Text)
	if err != nil {
		return otherwise
	}
	return n
}

// withoutPlace returns the text of a fault alone: a failure has the place of its step.
func withoutPlace(err error) error {
	var fault *yamltext.Error
	if errors.As(err, &fault) {
		return errors.New(fault.Text)
	}
	return err
}
