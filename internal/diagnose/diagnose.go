// Package diagnose finds out why the signature of a recorded webhook delivery
// does not match.
package diagnose

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// AnotherRegistration is the usual cause if no key matches.
const AnotherRegistration = "the keys may be those of another registration, since every registration has its own"

// Scheme is how deliveries are signed.
type Scheme struct {
	Header string                                             // the name of the request header
	Decode func(signature string) ([sha256.Size]byte, error)  // returns an error for what can't be a signature
	Sum    func(message []byte, key string) [sha256.Size]byte // the sum that a signature encodes
}

// Explain describes in a sentence why the signature does not match, or with
// which key it does. It names keys by their position, and shows neither a key
// nor a signature.
func (s Scheme) Explain(body []byte, signature string, keys []string) string {
	sent, sentHow, ok := s.read(signature)
	if !ok {
		return "The signature can't be read: " + s.explainUnreadable(signature) + "."
	}
	for i, key := range keys {
		if key != "" && sentHow == "" && s.Sum(body, key) == sent {
			return fmt.Sprintf("The signature matches as it is, with key %d of %d.", i+1, len(keys))
		}
	}
	for _, b := range bodyVariants(body) {
		for i, key := range keys {
			for _, k := range keyVariants(key) {
				if s.Sum(b.data, k.data) == sent {
					return fmt.Sprintf("The signature would match with key %d of %d: %s.", i+1, len(keys), joinHints(sentHow, k.how, b.how))
				}
			}
		}
	}
	return explainMismatch(body, keys)
}

// variant is another combination to try. If it matches, how says what to do; "" means
// nothing.
type variant[T any] struct {
	how  string
	data T
}

func joinHints(hints ...string) string {
	return strings.Join(slices.DeleteFunc(hints, func(hint string) bool { return hint == "" }), "; ")
}

// read decodes a signature, also one with other text around it.
func (s Scheme) read(text string) (sum [sha256.Size]byte, how string, ok bool) {
	trimmed := strings.Trim(text, " \t\r\n\"'")
	variants := []variant[string]{{"", text}, {"strip the space or the quotes around the signature", trimmed}}
	for i, c := range trimmed {
		if strings.ContainsRune("=:, ", c) {
			variants = append(variants, variant[string]{"strip what is before the signature", strings.TrimSpace(trimmed[i+1:])})
		}
	}
	if inner, err := base64.StdEncoding.DecodeString(trimmed); err == nil {
		variants = append(variants, variant[string]{"decode the signature from base64, in which its hex digits were wrapped", string(inner)})
	}
	for _, v := range variants {
		if sum, err := s.Decode(v.data); err == nil {
			return sum, v.how, true
		}
	}
	return sum, "", false
}

func (s Scheme) explainUnreadable(text string) string {
	_, notHex := hex.DecodeString(text)
	switch {
	case strings.TrimSpace(text) == "":
		return "it is empty; it is in the header " + s.Header
	case strings.Contains(text, ","):
		return "it holds a comma, so the header may have been sent more than once"
	case notHex == nil && len(text) == 40:
		return "40 hex digits are as long as a SHA-1, expected are the 64 of a SHA-256"
	case notHex == nil && len(text) == 128:
		return "128 hex digits are as long as a SHA-512, expected are the 64 of a SHA-256"
	}
	return fmt.Sprintf("it has %d characters; expected are 64 hex digits, or 43 or 44 characters of base64", len(text))
}

func explainMismatch(body []byte, keys []string) string {
	switch {
	case !slices.ContainsFunc(keys, func(key string) bool { return key != "" }):
		return "There is no shared key to verify with."
	case len(body) == 0:
		return "The body is empty: something may have read it before, so record it as the first thing in the chain."
	case !json.Valid(body):
		return "No key matches, and the body is not JSON: it may be cut off, compressed, or not the body that was signed."
	}
	return "No key matches, and no variant does: " + AnotherRegistration + ", or values in the body were changed."
}

func keyVariants(key string) []variant[string] {
	if key == "" {
		return []variant[string]{{"it was signed with an empty key, which never verifies; set the key", ""}}
	}
	trimmed := strings.TrimSpace(key)
	variants := []variant[string]{
		{"", key},
		{"trim the space around the key", trimmed},
		{"strip the quotes around the key", strings.Trim(trimmed, `"'`)},
		{"add a line end to the key: the sender has one in it", trimmed + "\n"},
	}
	if decoded, err := hex.DecodeString(trimmed); err == nil {
		variants = append(variants, variant[string]{"decode the key from hex", string(decoded)})
	}
	if decoded, err := base64.StdEncoding.DecodeString(trimmed); err == nil {
		variants = append(variants, variant[string]{"decode the key from base64", string(decoded)})
	}
	return variants
}

func bodyVariants(body []byte) []variant[[]byte] {
	trimmed := bytes.TrimSpace(body)
	variants := []variant[[]byte]{
		{"", body},
		{"remove the line end after the body", bytes.TrimRight(body, "\r\n")},
		{"add the line end after the body that was cut off", append(bytes.Clone(body), '\n')},
		{"remove the space around the body", trimmed},
		{"remove the byte order mark before the body", bytes.TrimPrefix(body, []byte("\ufeff"))},
		{"keep the line ends of the body: LF was turned into CRLF", bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n"))},
		{"keep the line ends of the body: CRLF was turned into LF", bytes.ReplaceAll(body, []byte("\n"), []byte("\r\n"))},
		{"verify the body that arrives: the signature is over no bytes at all", nil},
	}
	if decoded, err := base64.StdEncoding.DecodeString(string(trimmed)); err == nil {
		variants = append(variants, variant[[]byte]{"decode the body from base64, as a gateway passes it on", decoded})
	}
	var inner string
	if json.Unmarshal(body, &inner) == nil {
		variants = append(variants, variant[[]byte]{"the body is a JSON string: verify the text in it", []byte(inner)})
	}
	return append(variants, jsonVariants(body)...)
}
