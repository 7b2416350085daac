package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
)

// maxShown is how many characters of a value a failure shows.
const maxShown = 600

// shown returns a text from outside as one short line, without what a terminal obeys.
func shown(text string) string { return show.Clip(text, maxShown) }

// isThisMachine reports whether a host can only be this machine. Names below localhost
// may be resolved to any address.
func isThisMachine(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Zone() == "" && ip.Unmap().IsLoopback()
}

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

func textOr(v *yamltext.Value) string {
	if v == nil {
		return ""
	}
	return v.Text
}

var errTrailing = errors.New("there is more than one JSON document")
