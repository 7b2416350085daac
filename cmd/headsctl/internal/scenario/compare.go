package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
)

// operators are the keys of an expectation that is more than a value.
var operators = []string{"contains", "matches", "not", "absent", "equals"}

// isOperator reports whether an expectation has operators instead of keys.
func isOperator(want *yamltext.Value) bool {
	return want.Kind == yamltext.Object && slices.ContainsFunc(want.Members, func(m yamltext.Member) bool { return slices.Contains(operators, m.Key) })
}

// mismatch is where a value is not as expected.
type mismatch struct{ where, expected, actual string }

func differs(where string, want *yamltext.Value, got any, there bool) *mismatch {
	actual := "nothing"
	if there {
		actual = shownJSON(got)
	}
	return &mismatch{where, shownValue(want), actual}
}

// compare returns where a decoded value is not as expected, or nil. The variables of
// the expectation are replaced.
func compare(want *yamltext.Value, got any, there bool, where string) *mismatch {
	switch {
	case isOperator(want):
		for _, m := range want.Members {
			if !holds(m, got, there) {
				return differs(where, want, got, there)
			}
		}
		return nil
	case !there:
		return differs(where, want, got, there)
	}
	switch want.Kind {
	case yamltext.Object:
		object, ok := got.(map[string]any)
		if !ok {
			return differs(where, want, got, there)
		}
		for _, m := range want.Members {
			value, there := object[m.Key]
			if found := compare(m.Value, value, there, where+"."+m.Key); found != nil {
				return found
			}
		}
	case yamltext.List:
		list, ok := got.([]any)
		if !ok || len(list) != len(want.Items) {
			return differs(where, want, got, there)
		}
		for i, item := range want.Items {
			if found := compare(item, list[i], true, fmt.Sprintf("%s[%d]", where, i)); found != nil {
				return found
			}
		}
	default:
		if !sameScalar(want, got) {
			return differs(where, want, got, there)
		}
	}
	return nil
}

// holds reports whether an operator holds.
func holds(m yamltext.Member, got any, there bool) bool {
	switch m.Key {
	case "absent":
		return !there
	case "not":
		return compare(m.Value, got, there, "") != nil
	case "equals":
		return there && equals(m.Value, got)
	case "matches":
		text, ok := got.(string)
		re, err := regexp.Compile(m.Value.Text)
		return ok && err == nil && re.MatchString(text)
	case "contains":
		switch got := got.(type) {
		case string:
			return m.Value.Kind == yamltext.Text && strings.Contains(got, m.Value.Text)
		case []any:
			return slices.ContainsFunc(got, func(item any) bool { return compare(m.Value, item, true, "") == nil })
		}
	}
	return false
}

// equals reports whether a value is exactly the expected one: no key more.
func equals(want *yamltext.Value, got any) bool {
	switch want.Kind {
	case yamltext.Object:
		object, ok := got.(map[string]any)
		return ok && len(object) == len(want.Members) && !slices.ContainsFunc(want.Members, func(m yamltext.Member) bool {
			value, there := object[m.Key]
			return !there || !equals(m.Value, value)
		})
	case yamltext.List:
		list, ok := got.([]any)
		if !ok || len(list) != len(want.Items) {
			return false
		}
		for i, item := range want.Items {
			if !equals(item, list[i]) {
				return false
			}
		}
		return true
	}
	return sameScalar(want, got)
}

// sameScalar compares by kind: a text is no number.
func sameScalar(want *yamltext.Value, got any) bool {
	switch got := got.(type) {
	case nil:
		return want.Kind == yamltext.Null
	case bool:
		return want.Kind == yamltext.Bool && want.IsTrue() == got
	case string:
		return want.Kind == yamltext.Text && want.Text == got
	case json.Number:
		return want.Kind == yamltext.Number && sameNumber(want.Text, got.String())
	}
	return false
}

func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	if len(a) > 40 || len(b) > 40 || strings.ContainsAny(a+b, "eE") { // an exponent could stand for millions of digits
		x, err := strconv.ParseFloat(a, 64)
		y, err2 := strconv.ParseFloat(b, 64)
		return err == nil && err2 == nil && x == y
	}
	x, ok := new(big.Rat).SetString(a)
	y, ok2 := new(big.Rat).SetString(b)
	return ok && ok2 && x.Cmp(y) == 0
}

// compareNumber compares an expectation with a number of the runner, such as a
// status.
func compareNumber(want *yamltext.Value, got int, where string) *mismatch {
	return compare(want, json.Number(fmt.Sprint(got)), true, where)
}

// compareText compares a body or an output, without one newline at its end. Compared
// with a map or a list it is JSON.
func compareText(want *yamltext.Value, text, where string) *mismatch {
	text = withoutNewline(text)
	if !wantsJSON(want) {
		return compare(want, text, true, where)
	}
	value, err := decodeJSON([]byte(text))
	if err != nil {
		return &mismatch{where, shownValue(want), "not JSON: " + shown(text)}
	}
	return compare(want, value, true, where)
}

// wantsJSON reports whether an expectation of a text is one of JSON.
func wantsJSON(want *yamltext.Value) bool {
	if !isOperator(want) {
		return want.Kind == yamltext.Object || want.Kind == yamltext.List
	}
	return slices.ContainsFunc(want.Members, func(m yamltext.Member) bool {
		return (m.Key == "equals" || m.Key == "not") && wantsJSON(m.Value)
	})
}

func withoutNewline(text string) string {
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
}

// comparePaths compares values of a document with a map from paths to
// expectations.
func comparePaths(want *yamltext.Value, document []byte, where string) *mismatch {
	value, err := decodeJSON(document)
	if err != nil {
		return &mismatch{where, shownValue(want), "not JSON: " + shown(string(document))}
	}
	for _, m := range want.Members {
		p, err := parsePath(m.Key)
		if err != nil {
			return &mismatch{where, shownValue(want), err.Error()}
		}
		got, there := p.in(value)
		if found := compare(m.Value, got, there, strings.TrimSpace(where+" "+m.Key)); found != nil {
			return found
		}
	}
	return nil
}

// pick returns what is kept of a reply by save.
func pick(document []byte, at string) (*yamltext.Value, error) {
	p, err := parsePath(at)
	if err != nil {
		return nil, err
	}
	value, err := decodeJSON(document)
	if err != nil {
		return nil, fmt.Errorf("the reply is not JSON: %s", shown(string(document)))
	}
	found, there := p.in(value)
	if !there {
		return nil, errors.New("the reply has nothing there: " + shownJSON(value))
	}
	if text, ok := found.(string); ok {
		return yamltext.NewText(text), nil
	}
	encoded, err := json.Marshal(found)
	if err != nil {
		return nil, err
	}
	return yamltext.Parse(encoded)
}
