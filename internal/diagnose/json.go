package diagnose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/headsapi/heads-go/internal/rawjson"
)

// jsonVariants returns the body as common encoders write it. If one of these forms
// was signed, the body was decoded and encoded again before it arrived.
func jsonVariants(body []byte) []variant[[]byte] {
	var variants []variant[[]byte]
	for _, text := range jsonTexts(body) {
		for _, layout := range jsonLayouts {
			variants = append(variants, variant[[]byte]{
				fmt.Sprintf("verify the bytes as they arrive: those signed were JSON %s (%s)", layout.how, text.how),
				layout.data(text.data),
			})
		}
	}
	return variants
}

// jsonTexts returns the compact forms of the body that differ in how strings
// are escaped and members are ordered.
func jsonTexts(body []byte) []variant[[]byte] {
	var kept bytes.Buffer
	if json.Compact(&kept, body) != nil {
		return nil
	}
	orders := []variant[[]byte]{{"", kept.Bytes()}}
	if b, ok := sortedJSON(body); ok {
		orders = append(orders, variant[[]byte]{"members sorted by name", b})
	}
	var texts []variant[[]byte]
	for _, order := range orders {
		for _, q := range jsonQuotings {
			texts = append(texts, variant[[]byte]{joinHints(order.how, q.how), requote(order.data, q.data)})
		}
	}
	return texts
}

func sortedJSON(body []byte) ([]byte, bool) {
	var value any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if dec.Decode(&value) != nil {
		return nil, false
	}
	b, err := json.Marshal(value)
	return b, err == nil
}

var jsonLayouts = []variant[func([]byte) []byte]{
	{"without spaces", func(b []byte) []byte { return b }},
	{"with a space after each comma and colon", spaced},
	{"indented by 2", func(b []byte) []byte { return indented(b, "  ") }},
	{"indented by 4", func(b []byte) []byte { return indented(b, "    ") }},
	{"indented by tabs", func(b []byte) []byte { return indented(b, "\t") }},
}

func indented(compact []byte, indent string) []byte {
	var buf bytes.Buffer
	_ = json.Indent(&buf, compact, "", indent)
	return buf.Bytes()
}

func spaced(compact []byte) []byte {
	b := bytes.ReplaceAll(indented(compact, ""), []byte(",\n"), []byte(", "))
	return bytes.ReplaceAll(b, []byte("\n"), nil)
}

var jsonQuotings = []variant[func(string) string]{
	{"escaped as here", nil},
	{"without needless escapes", quotePlain},
	{"with <, > and & escaped", quoteHTML},
	{"with everything beyond ASCII escaped", quoteASCII},
	{"with slashes and everything beyond ASCII escaped", func(s string) string { return strings.ReplaceAll(quoteASCII(s), "/", `\/`) }},
}

// requote replaces every string of the compact JSON with its other form. Order and
// numbers stay the same. If quote is nil, the strings stay the same, too.
func requote(compact []byte, quote func(string) string) []byte {
	if quote == nil {
		return compact
	}
	var out []byte
	for len(compact) > 0 {
		if compact[0] != '"' {
			out = append(out, compact[0])
			compact = compact[1:]
			continue
		}
		end := rawjson.SkipString(compact, 0)
		var s string
		_ = json.Unmarshal(compact[:end], &s)
		out = append(out, quote(s)...)
		compact = compact[end:]
	}
	return out
}

func quotePlain(s string) string { return string(rawjson.String(s)) }

func quoteHTML(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func quoteASCII(s string) string {
	var out strings.Builder
	for _, r := range quotePlain(s) {
		if r < 0x80 {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			out.WriteString(`\u` + strconv.FormatInt(0x10000+int64(unit), 16)[1:])
		}
	}
	return out.String()
}
