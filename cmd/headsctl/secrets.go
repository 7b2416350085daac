package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
)

// redacted is what the library shows of a secret.
var redacted = heads.NewSecret("x").String()

func showSecretsFlag(cmd *cobra.Command, show *bool) {
	cmd.Flags().BoolVar(show, "show-secrets", false, "show keys and tokens instead of [redacted]")
}

// maskBody masks a body of the service. In one that is no JSON, such as the page of a
// proxy, it masks the URLs.
func maskBody(body []byte) []byte {
	body = bytes.TrimSpace(body)
	switch {
	case json.Valid(body):
	case utf8.Valid(body):
		return []byte(maskText(string(body)))
	default: // JSON has no such bytes, so each becomes a character
		return fromLatin1(maskText(toLatin1(body)))
	}
	masked, _ := heads.NewRaw(body).MarshalJSON() // it fails for no JSON
	return masked
}

// maskText masks the URLs in a text.
func maskText(text string) string { return rawjson.Unquote(maskBody(rawjson.String(text))) }

func toLatin1(text []byte) string {
	runes := make([]rune, len(text))
	for i, b := range text {
		runes[i] = rune(b)
	}
	return string(runes)
}

func fromLatin1(text string) []byte {
	var b []byte
	for _, r := range text {
		b = append(b, byte(r))
	}
	return b
}

// headDocument returns the JSON of a head with its secrets, which package json does
// not show.
func headDocument(h *heads.Head) (json.RawMessage, error) {
	doc, err := rawjson.Encode(h)
	return unmask(doc, h.Raw.Bytes()), err
}

// shownHead returns a head as it is shown, and its JSON.
func shownHead(h *heads.Head, secrets bool) (*heads.Head, json.RawMessage, error) {
	doc, err := headDocument(h)
	if secrets || err != nil {
		return h, doc, err
	}
	doc, shown := maskBody(doc), new(heads.Head)
	return shown, doc, json.Unmarshal(doc, shown)
}

// unmask puts the texts of a document where a masked form of it has others.
func unmask(masked, document []byte) []byte {
	switch kind := rawjson.Kind(masked); {
	case kind != rawjson.Kind(document):
	case kind == "object":
		values := map[string][]byte{}
		for m := range rawjson.Members(document) {
			values[m.Key] = m.Value
		}
		var members [][]byte
		for m := range rawjson.Members(masked) {
			if value, ok := values[m.Key]; ok {
				m.Value = unmask(m.Value, value)
			}
			members = append(members, rawjson.AppendMember(nil, m.Key, m.Value))
		}
		return enclose('{', members, '}')
	case kind == "array":
		elements, values := slices.Collect(rawjson.Elements(masked)), slices.Collect(rawjson.Elements(document))
		if len(elements) != len(values) {
			break
		}
		var all [][]byte
		for i := range elements {
			all = append(all, unmask(elements[i], values[i]))
		}
		return enclose('[', all, ']')
	case kind == "string" && strings.Contains(rawjson.Unquote(masked), redacted):
		return document
	}
	return masked
}

func enclose(open byte, parts [][]byte, end byte) []byte {
	return append(append([]byte{open}, bytes.Join(parts, []byte{','})...), end)
}
