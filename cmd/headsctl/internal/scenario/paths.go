package scenario

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// path is a place in a JSON document, such as $.orders[0]["tracking id"].
type path []any // string keys and int indexes

var pathPart = regexp.MustCompile(`^(?:\.([^.\[\]\s"]+)|\[(\d{1,6})\]|\[("(?:[^"\\]|\\.)*")\])`)

// parsePath reads a path.
func parsePath(text string) (path, error) {
	rest, ok := strings.CutPrefix(text, "$")
	if !ok {
		return nil, fmt.Errorf("%q is not a path; write one such as $.orders[0].status", shown(text))
	}
	p := path{}
	for rest != "" {
		found := pathPart.FindStringSubmatch(rest)
		switch {
		case found == nil:
			return nil, fmt.Errorf("the path %q can't be read from %q on; write one such as $.orders[0][\"tracking id\"]", shown(text), shown(rest))
		case found[1] != "":
			p = append(p, found[1])
		case found[2] != "":
			index, _ := strconv.Atoi(found[2])
			p = append(p, index)
		default:
			var key string
			if json.Unmarshal([]byte(found[3]), &key) != nil {
				return nil, fmt.Errorf("the path %q has a name that is not a JSON string: %s", shown(text), shown(found[3]))
			}
			p = append(p, key)
		}
		rest = rest[len(found[0]):]
	}
	return p, nil
}

// in returns the value at the path of a decoded document.
func (p path) in(v any) (value any, there bool) {
	for _, part := range p {
		switch part := part.(type) {
		case string:
			object, _ := v.(map[string]any)
			if v, there = object[part]; !there {
				return nil, false
			}
		case int:
			list, _ := v.([]any)
			if part >= len(list) {
				return nil, false
			}
			v = list[part]
		}
	}
	return v, true
}
