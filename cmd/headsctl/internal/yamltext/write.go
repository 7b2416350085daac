package yamltext

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
)

// Write writes a JSON document as YAML that is read back as the same document.
// The encoder of the YAML library is not used, since it keeps neither the order of
// keys nor the digits of numbers.
func Write(doc []byte) []byte {
	return append(bytes.TrimPrefix(appendYAML(nil, doc, 0), []byte{'\n'}), '\n')
}

// appendYAML writes what follows a key or a dash: a space and a scalar, or a
// line break and a block.
func appendYAML(out, value []byte, indent int) []byte {
	switch rawjson.Kind(value) {
	case "object":
		empty := true
		for m := range rawjson.Members(value) {
			empty = false
			out = startLine(out, indent)
			out = append(out, Scalar(string(m.Key))+":"...)
			out = appendYAML(out, m.Value, indent+1)
		}
		if empty {
			return append(out, " {}"...)
		}
		return out
	case "array":
		empty := true
		for element := range rawjson.Elements(value) {
			empty = false
			out = append(startLine(out, indent), '-')
			out = appendItem(out, element, indent+1)
		}
		if empty {
			return append(out, " []"...)
		}
		return out
	case "string":
		text := rawjson.Unquote(bytes.TrimSpace(value))
		if isBlock(text) {
			return appendBlock(out, text, indent)
		}
		return append(out, " "+Scalar(text)...)
	}
	return append(append(out, ' '), withPoint(bytes.TrimSpace(value))...)
}

// withPoint writes 1e3 as 1.0e3, which YAML 1.1 and 1.2 both take for a number.
func withPoint(number []byte) []byte {
	if e := bytes.IndexAny(number, "eE"); e > 0 && (number[0] == '-' || number[0] >= '0' && number[0] <= '9') && !bytes.Contains(number, []byte{'.'}) {
		return slices.Concat(number[:e], []byte(".0"), number[e:])
	}
	return number
}

// appendItem writes an item of a list, whose first member follows the dash on its line.
func appendItem(out, value []byte, indent int) []byte {
	item := appendYAML(nil, value, indent)
	return append(append(out, ' '), bytes.TrimLeft(item, "\n ")...)
}

func startLine(out []byte, indent int) []byte {
	return append(append(out, '\n'), bytes.Repeat([]byte("  "), indent)...)
}

var (
	plainText  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$`)
	plainID    = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	plainURL   = regexp.MustCompile(`^https?://[A-Za-z0-9_./:?=&%~-]*[A-Za-z0-9_/=-]$`)
	blockLines = regexp.MustCompile(`^[!-~\p{L}][ -~\p{L}\p{P}\p{N}]*(\n[ -~\p{L}\p{P}\p{N}]*)*\n?$`)
	blankEnds  = regexp.MustCompile(`(?m)[ ]$`)
	reserved   = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
)

// Scalar writes a text without quotes where that can't be read as anything
// else, and as a JSON string otherwise.
func Scalar(text string) string {
	plain := plainText.MatchString(text) && !slices.Contains(reserved, strings.ToLower(text))
	if plain || plainURL.MatchString(text) || plainID.MatchString(text) && !strings.HasPrefix(text, "0") {
		return text
	}
	return string(show.JSON(rawjson.String(text)))
}

// isBlock reports whether a text is written as lines of its own.
func isBlock(text string) bool {
	return strings.Contains(strings.TrimSuffix(text, "\n"), "\n") && blockLines.MatchString(text) &&
		!blankEnds.MatchString(text) && !strings.HasSuffix(text, "\n\n")
}

func appendBlock(out []byte, text string, indent int) []byte {
	body, end := strings.CutSuffix(text, "\n")
	out = append(out, " |"...)
	if !end {
		out = append(out, '-')
	}
	for line := range strings.SplitSeq(body, "\n") {
		if line == "" {
			out = append(out, '\n')
			continue
		}
		out = append(startLine(out, max(indent, 1)), line...)
	}
	return out
}
