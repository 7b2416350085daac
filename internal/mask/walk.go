package mask

import "github.com/headsapi/heads-go/internal/rawjson"

// walker reads a JSON document once, however deep it is. P says where a value is.
type walker[P any] struct {
	enter func(at P, object bool) P           // returns the place of what an object or a list holds; nil for the same
	under func(at P, name string) P           // returns the place of a member of an object
	token func(token []byte, at P, name bool) // gets each brace, bracket, comma, colon, string and literal; name: of a member
}

func (w walker[P]) walk(doc []byte, root P) {
	type level struct {
		at     P
		object bool
	}
	var open []level
	at := root
	for i := rawjson.SkipSpace(doc, 0); i < len(doc); i = rawjson.SkipSpace(doc, i) {
		if len(open) > 0 && !open[len(open)-1].object {
			at = open[len(open)-1].at
		}
		switch c := doc[i]; c {
		case '{', '[':
			inner := level{at, c == '{'}
			if w.enter != nil {
				inner.at = w.enter(at, inner.object)
			}
			w.token(doc[i:i+1], at, false)
			open = append(open, inner)
			i++
		case '}', ']':
			w.token(doc[i:i+1], at, false)
			open = open[:max(0, len(open)-1)]
			i++
		case ',', ':':
			w.token(doc[i:i+1], at, false)
			i++
		case '"':
			end := rawjson.SkipString(doc, i)
			next := rawjson.SkipSpace(doc, end)
			name := len(open) > 0 && open[len(open)-1].object && next < len(doc) && doc[next] == ':'
			if name {
				at = w.under(open[len(open)-1].at, rawjson.Unquote(doc[i:end]))
			}
			w.token(doc[i:end], at, name)
			i = end
		default:
			end := i + 1
			for end < len(doc) && !isDelimiter(doc[end]) {
				end++
			}
			w.token(doc[i:end], at, false)
			i = end
		}
	}
}

func isDelimiter(c byte) bool {
	switch c {
	case ',', ':', '{', '}', '[', ']', '"', ' ', '\n', '\t', '\r':
		return true
	}
	return false
}
