package compare

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/redact"
)

// Explainer puts the names of values back into the URLs of a head, so that those of
// two environments can be compared.
type Explainer struct {
	values  []explained // the longest first
	unmixed *strings.Replacer
}

// explained is a value. Its stand-in is a character for private use, so that a URL
// with it can still be masked.
type explained struct{ name, text, standIn string }

const (
	firstStandIn = '\ue000'
	// standInScheme is that of a value with any scheme, so that a value may be http in one
	// environment and https in another.
	standInScheme = "https://"
)

// NewExplainer returns one for the values of an environment and its name.
func NewExplainer(e *headsfile.Environment) *Explainer {
	x := &Explainer{}
	var shown []string
	add := func(name, text string) {
		standIn := string(firstStandIn + rune(len(x.values)))
		shown = append(shown, standIn, "${"+name+"}")
		if strings.Contains(text, "://") {
			standIn = standInScheme + standIn
			shown = append([]string{standIn, "${" + name + "}"}, shown...)
		}
		x.values = append(x.values, explained{name, text, standIn})
	}
	for _, name := range slices.Sorted(maps.Keys(e.Values)) {
		add(name, e.Values[name])
	}
	add("env", e.Name)
	slices.SortStableFunc(x.values, func(a, b explained) int { return cmp.Compare(len(b.text), len(a.text)) })
	x.unmixed = strings.NewReplacer(shown...)
	return x
}

// urls matches the URLs in a text.
var urls = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+`)

// put returns a text with stand-ins for the values in its URLs.
func (x *Explainer) put(text string) string {
	last := firstStandIn + rune(len(x.values))
	if strings.ContainsFunc(text, func(r rune) bool { return r >= firstStandIn && r < last }) {
		return text
	}
	return urls.ReplaceAllStringFunc(text, func(found string) string {
		var b strings.Builder
		for at := 0; at < len(found); {
			v := x.at(found, at)
			if v == nil {
				b.WriteByte(found[at])
				at++
				continue
			}
			b.WriteString(v.standIn)
			at += len(v.text)
		}
		return b.String()
	})
}

// at returns the value that is at a place of a URL, as a whole: not a part of a longer
// word.
func (x *Explainer) at(url string, at int) *explained {
	for i := range x.values {
		v := &x.values[i]
		if v.text != "" && strings.HasPrefix(url[at:], v.text) && isEdge(url[:at], v.text) && isEdge(url[:at+len(v.text)], url[at+len(v.text):]) {
			return v
		}
	}
	return nil
}

// isEdge reports whether no word goes on from one text into the next.
func isEdge(before, after string) bool {
	a, _ := utf8.DecodeLastRuneInString(before)
	b, _ := utf8.DecodeRuneInString(after)
	return before == "" || after == "" || !isWordRune(a) || !isWordRune(b)
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// show returns a masked text with ${name} in the place of the stand-ins.
func (x *Explainer) show(text string) string { return x.unmixed.Replace(text) }

// showURL masks the URL of a webhook.
func (x *Explainer) showURL(url string) string {
	document := rawjson.Object(rawjson.AppendMember(nil, "webhookUrl", rawjson.String(url)))
	return x.show(rawjson.Unquote(rawjson.Get(redact.Body(document), "webhookUrl")))
}
