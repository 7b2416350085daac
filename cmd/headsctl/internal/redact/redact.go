// Package redact masks secrets in documents and texts.
package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/internal/mask"
)

// Mark is what the library shows of a secret.
const Mark = mask.Redacted

// Body masks a body of the service. In one that is no JSON, such as the page of a
// proxy, it masks the URLs.
func Body(body []byte) []byte {
	body = bytes.TrimSpace(body)
	switch {
	case json.Valid(body):
	case utf8.Valid(body):
		return []byte(Text(string(body)))
	default: // JSON has no such bytes, so each becomes a character
		return fromLatin1(Text(toLatin1(body)))
	}
	return mask.JSON(body, mask.SecretsOf(body)...)
}

// Text masks the URLs in a text.
func Text(text string) string { return rawjson.Unquote(Body(rawjson.String(text))) }

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

// Restore replaces what stands for hidden values in a document by the values of the same
// document, which hides nothing.
func Restore(masked, document []byte) []byte {
	switch kind := rawjson.Kind(masked); {
	case kind == "string" && mask.IsMasked(rawjson.Unquote(masked)):
		return document
	case kind != rawjson.Kind(document):
	case kind == "object":
		values := map[string][]byte{}
		for m := range rawjson.Members(document) {
			values[m.Key] = m.Value
		}
		var members [][]byte
		for m := range rawjson.Members(masked) {
			if value, ok := values[m.Key]; ok {
				m.Value = Restore(m.Value, value)
			}
			members = append(members, rawjson.AppendMember(nil, m.Key, m.Value))
		}
		return rawjson.Object(members...)
	case kind == "array":
		elements, values := slices.Collect(rawjson.Elements(masked)), slices.Collect(rawjson.Elements(document))
		if len(elements) != len(values) {
			break
		}
		var all [][]byte
		for i := range elements {
			all = append(all, Restore(elements[i], values[i]))
		}
		return rawjson.Array(all...)
	case kind == "string" && strings.Contains(rawjson.Unquote(masked), Mark):
		return document
	}
	return masked
}
