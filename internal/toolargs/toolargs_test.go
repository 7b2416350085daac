package toolargs_test

import (
	"encoding/json"
	"errors"
	"math"
	"net/netip"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headsapi/heads-go/internal/toolargs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// There is one type for every way in which a value can be read.
type (
	color   string
	address struct {
		Street string   `json:"street"`
		Number *int     `json:"number"`
		Lines  []string `json:"lines,omitempty"`
	}
	grade  int                     // a type with its own JSON
	letter uint8                   // a byte that is not one in JSON
	choice struct{ Chosen string } // a struct with its own JSON

	stamp struct {
		time.Time
		Text string
	}
	requiredArg[T any] struct {
		V T `json:"v" jsonschema:"A value"`
	}
	optionalArg[T any] struct {
		V T `json:"v,omitzero" jsonschema:"A value"`
	}
	pointerArg[T any] struct {
		V *T `json:"v" jsonschema:"A value"`
	}
)

func (s stamp) MarshalJSON() ([]byte, error) { return json.Marshal(s.Text) }

func (l *letter) UnmarshalText(text []byte) error {
	if len(text) != 1 {
		return errors.New("no letter")
	}
	*l = letter(text[0])
	return nil
}

func (c *choice) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &c.Chosen) }

var grades = []string{`""`, `"low"`, `"high"`}

func (g *grade) UnmarshalJSON(data []byte) error {
	if *g = grade(slices.Index(grades, string(data))); *g < 1 {
		return errors.New("no grade")
	}
	return nil
}

func (g grade) MarshalJSON() ([]byte, error) { return []byte(grades[g]), nil }

// done is the reply of a function that was called.
const done = "done"

func fieldsOf[In any](t testing.TB, location *time.Location) toolargs.Fields {
	t.Helper()
	fields, faults := toolargs.FromStruct(reflect.TypeFor[In](), toolargs.Options{Location: location, Stamp: reflect.TypeFor[stamp]()})
	require.Empty(t, faults)
	return fields
}

// callWith returns the arguments that the function of a tool receives, and the reply:
// done, or the faults, after which the function is not called.
func callWith[In any](t testing.TB, body string) (in In, reply string) {
	return callIn[In](t, nil, body)
}

func callIn[In any](t testing.TB, location *time.Location, body string) (in In, reply string) {
	t.Helper()
	fields := fieldsOf[In](t, location)
	values, _ := fields.Split([]byte(body))
	var read In
	if faults := fields.Decode(values, reflect.ValueOf(&read).Elem()); faults != nil {
		return in, faults.Error()
	}
	return read, done
}

// receives asserts what the function of a tool receives.
func receives[In any](t *testing.T, want In, body string) {
	t.Helper()
	got, reply := callWith[In](t, body)
	require.Equal(t, done, reply, body)
	assert.Equal(t, want, got, body)
}

// refuses asserts that a tool's function is not called.
func refuses[In any](t *testing.T, reply, body string) {
	t.Helper()
	got, said := callWith[In](t, body)
	assert.Equal(t, reply, said, body)
	assert.Zero(t, got, body)
}

const missing = "v is missing; ask the user for it"

// roundTrip sends value through a tool, as a required argument and as each kind of optional one.
func roundTrip[T any](wireType string, value T) func(*testing.T) {
	return func(t *testing.T) {
		encoded, err := json.Marshal(value)
		require.NoError(t, err)
		field := fieldsOf[requiredArg[T]](t, nil).List()[0]
		assert.Equal(t, []string{"v", wireType, "A value"}, []string{field.Name, field.WireType(), field.Description})
		body := `{"v":` + string(encoded) + `,"session_metadata":{"session_id":"s-1"}}`
		receives(t, requiredArg[T]{value}, body)
		receives(t, optionalArg[T]{value}, body)
		receives(t, pointerArg[T]{&value}, body)
		for _, without := range []string{`{}`, `{"v":null}`} {
			refuses[requiredArg[T]](t, missing, without)
			receives(t, optionalArg[T]{}, without)
			receives(t, pointerArg[T]{}, without)
		}
	}
}

func TestEveryKindMakesTheRoundTrip(t *testing.T) {
	seven := 7
	moment := time.Date(2026, 8, 31, 6, 56, 30, 5e8, time.UTC)
	for _, run := range []func(*testing.T){
		roundTrip("string", "Zażółć \"gęślą\"\n🌦️"), roundTrip("string", ""), roundTrip("string", color("red")), roundTrip("boolean", true),
		roundTrip("integer", -7), roundTrip("integer", int8(math.MinInt8)), roundTrip("integer", int16(math.MaxInt16)),
		roundTrip("integer", int32(math.MinInt32)), roundTrip("integer", int64(math.MinInt64)), roundTrip("integer", uint(7)),
		roundTrip("integer", uint8(math.MaxUint8)), roundTrip("integer", uint16(math.MaxUint16)),
		roundTrip("integer", uint32(math.MaxUint32)), roundTrip("integer", uint64(math.MaxUint64)),
		roundTrip("number", float32(0.1)), roundTrip("number", 1e-300),
		roundTrip("string", moment), roundTrip("string", stamp{Time: moment, Text: "2026-08-31 06:56:30.5Z"}),
		roundTrip("string", netip.MustParseAddr("203.0.113.7")), roundTrip("integer", grade(2)), roundTrip("string", []byte{0, 1, 254, 255}),
		roundTrip("object", json.RawMessage(`{"a":[1,2.50,null]}`)), roundTrip("object", json.RawMessage(`1.50`)),
		roundTrip("array", []string{"a", ""}), roundTrip("array", []string{}), roundTrip("array", [][]int{{1, 2}, {}}),
		roundTrip("array", []*int{&seven, nil}), roundTrip("array", []json.RawMessage{json.RawMessage(`null`), json.RawMessage(`"a"`)}),
		roundTrip("array", [2]float64{1.5, -2}), roundTrip("object", map[color]int{"red": 1, "": 2}), roundTrip("object", map[string]bool{}),
		roundTrip("object", map[string][]bool{"a": {true, false}}),
		roundTrip("object", address{Street: "Main", Number: &seven, Lines: []string{"2nd floor"}}),
		roundTrip("array", []address{{Street: "Main"}, {Street: "High", Number: &seven}}),
	} {
		run(t)
	}
}

// read asserts what each value is read as.
func read[T any](t *testing.T, values map[string]T) {
	t.Helper()
	for raw, want := range values {
		receives(t, requiredArg[T]{want}, `{"v": `+raw+` }`)
	}
}

func TestArgumentsAreReadLeniently(t *testing.T) {
	noon := time.Date(2026, 8, 31, 12, 0, 0, 0, time.UTC)
	read(t, map[string]int{`"5"`: 5, `"-5"`: -5, `"+5"`: 5, `" 5 "`: 5, `"007"`: 7, `5.0`: 5, `"5.00"`: 5, `5e2`: 500, `1.5E+1`: 15, `1500e-2`: 15, `0e-5`: 0, `-0`: 0})
	read(t, map[string]uint8{`-0.0`: 0, `"255"`: 255})
	read(t, map[string]int64{`9007199254740993.0`: 9007199254740993, `"-9223372036854775808"`: math.MinInt64}) // which no float holds
	read(t, map[string]uint64{`18446744073709551615.0`: math.MaxUint64})
	read(t, map[string]float64{`"5.5"`: 5.5, `"-1.5e-3"`: -0.0015, `5`: 5, `".5"`: 0.5})
	read(t, map[string]bool{`"true"`: true, `" True "`: true, `"Yes"`: true, `1`: true, `"1"`: true, `"FALSE"`: false, `"no"`: false, `0`: false})
	read(t, map[string]string{`12.50`: "12.50", `true`: "true", `"caf\u00e9 \ud83c\udf26"`: "café 🌦"})
	read(t, map[string]color{`7`: "7"})
	read(t, map[string]letter{`7`: '7'})
	read(t, map[string][]letter{`["a","b"]`: {'a', 'b'}})
	read(t, map[string]choice{`"first"`: {"first"}})
	read(t, map[string][]string{`"a"`: {"a"}, `5`: {"5"}, `" [\"a\",\"b\"]"`: {"a", "b"}, `"[]"`: {}, `"[a]"`: {"[a]"}, `["[1]"]`: {"[1]"}})
	read(t, map[string][]int{`"5"`: {5}, `["1",2,"3.0"]`: {1, 2, 3}})
	read(t, map[string][][]int{`[1,"2"]`: {{1}, {2}}})
	read(t, map[string][1]int{`5`: {5}})
	read(t, map[string][2]int{`"[1,\"2\"]"`: {1, 2}})
	read(t, map[string][]address{`{"street":"Main"}`: {{Street: "Main"}}, `"{\"street\":5}"`: {{Street: "5"}}})
	read(t, map[string]map[string]bool{`"{\"a\":\"yes\"}"`: {"a": true}, `{"a":"yes","b":0}`: {"a": true, "b": false}})
	read(t, map[string]address{`{"street":5}`: {Street: "5"}, "{ \"street\" : \"Main\" ,\n \"lines\" : [ \"a\" , \"b\" ] }": {Street: "Main", Lines: []string{"a", "b"}}})
	read(t, map[string]stamp{`"2026-08-31T14:00:00+02:00"`: {Time: noon.In(time.FixedZone("", 7200)), Text: "2026-08-31T14:00:00+02:00"}})
	read(t, map[string]time.Time{`"2026-08-31 12:00:00Z"`: noon, `"2026-08-31T12:00Z"`: noon, `" 2026-08-31 12:00Z "`: noon, `"2026-08-31"`: noon.Add(-12 * time.Hour)})
}

func TestBlankStringLeavesOutWhatIsNotText(t *testing.T) {
	for _, run := range []func(*testing.T){
		blank[int], blank[float64], blank[bool], blank[time.Time], blank[time.Duration], blank[stamp], blank[netip.Addr], blank[[]string], blank[map[string]int], blank[address],
	} {
		run(t)
	}
	space := " "
	receives(t, pointerArg[string]{&space}, `{"v":" "}`)
}

func blank[T any](t *testing.T) {
	refuses[requiredArg[T]](t, missing, `{"v":" "}`)
	for _, body := range []string{`{"v":""}`, `{"v":"\n\t"}`, `{"v":"\u0020"}`} {
		receives(t, optionalArg[T]{}, body)
	}
}

// refusals is the golden table, a line "name: message" for each row.
type refusals struct {
	*testing.T
	lines strings.Builder
}

// refused adds the reply to each body, which comes after its name.
func refused[In any](r *refusals, rows ...string) {
	r.Helper()
	for i := 0; i < len(rows); i += 2 {
		got, reply := callWith[In](r, rows[i+1])
		require.Zero(r, got, "the function is not called: %s", rows[i])
		r.lines.WriteString(rows[i] + ": " + strings.ReplaceAll(reply, "\n", " ") + "\n") // the handler writes one line
	}
}

func refusedValue[T any](r *refusals, rows ...string) {
	r.Helper()
	for i := 1; i < len(rows); i += 2 {
		rows[i] = `{"v":` + rows[i] + `}`
	}
	refused[requiredArg[T]](r, rows...)
}

// TestModelIsToldWhatIsWrong compares with testdata/refusals.txt.
func TestModelIsToldWhatIsWrong(t *testing.T) {
	type trip struct {
		From  string  `json:"from" jsonschema:"From"`
		To    string  `json:"to" jsonschema:"To"`
		Days  int     `json:"days" jsonschema:"Days"`
		Price float64 `json:"price,omitempty" jsonschema:"Price"`
	}
	r := &refusals{T: t}
	refused[trip](r, "one missing", `{"from":"Oslo","to":"Rome"}`, "two missing", `{"from":"Oslo"}`, "three missing", `{}`,
		"missing and wrong", `{"from":"Oslo","days":"many","price":"high"}`, "wrong optional", `{"from":"Oslo","to":"Rome","days":1,"price":"high"}`)
	refusedValue[string](r, "object for text", `{"a":1}`, "list for text", `["a"]`)
	refusedValue[bool](r, "word for boolean", `"maybe"`, "number for boolean", `2`, "list for boolean", `[true]`)
	refusedValue[int](r, "word for integer", `"many"`, "fraction for integer", `5.5`, "fraction by exponent for integer", `5e-1`,
		"boolean for integer", `true`, "object for integer", `{}`, "list for integer", `[5]`, "hexadecimal for integer", `"0x10"`,
		"separators for integer", `"1,000"`, "two numbers for integer", `"1-2"`, "two points for integer", `"1.2.3"`, "sign alone for integer", `"-"`,
		"exponent without end for integer", `1e999999999`, "exponent without digits for integer", `"5e"`, "exponent alone for integer", `"e5"`)
	refusedValue[int8](r, "int8 above", `128`, "int8 below", `-129`)
	refusedValue[int16](r, "int16 above", `"32768"`)
	refusedValue[int32](r, "int32 below", `-2147483649`)
	refusedValue[int64](r, "int64 above", `9223372036854775808`, "int64 below", `-9223372036854775809`)
	refusedValue[uint8](r, "uint8 above", `256`, "uint8 below", `-1`)
	refusedValue[uint16](r, "uint16 above", `65536`)
	refusedValue[uint32](r, "uint32 above", `5e9`)
	refusedValue[uint64](r, "uint64 above", `18446744073709551616`)
	refusedValue[uint](r, "word for unsigned", `"few"`)
	refusedValue[float64](r, "word for number", `"high"`, "infinity for number", `"Inf"`, "not a number for number", `"NaN"`,
		"hexadecimal for number", `"0x1p-2"`, "two numbers for number", `"1-2"`, "list for number", `[1.5]`, "float64 above", `1e400`)
	refusedValue[float32](r, "float32 above", `1e39`)
	refusedValue[time.Time](r, "word for time", `"tomorrow"`, "impossible date for time", `"2026-02-30"`, "number for time", `1756623390`,
		"object for time", `{}`, "no zone for time", `"2026-08-31 12:00"`)
	refusedValue[stamp](r, "word for time with its text", `"tomorrow"`, "no zone for time with its text", `"2026-08-31T12:00:00.5"`)
	refusedValue[time.Duration](r, "word for duration", `"soon"`, "months for duration", `"P1M"`, "list for duration", `[90]`)
	refusedValue[netip.Addr](r, "word for text of a form", `"localhost"`, "list for text of a form", `["::1"]`)
	refusedValue[grade](r, "word for JSON of a form", `"middling"`)
	refusedValue[[]byte](r, "word for bytes", `"not base64!"`, "number for bytes", `1234`, "list for bytes", `[1,2]`)
	refusedValue[[]int](r, "word in a list", `[1,"two",3,"four"]`, "null in a list", `[1,null]`, "word for a list", `"two"`)
	refusedValue[[][]int](r, "word in a list of lists", `[[1],[2,"three"]]`)
	refusedValue[[2]int](r, "too few for an array", `[1]`, "too many for an array", `[1,2,3]`, "word in an array", `[1,"two"]`)
	refusedValue[map[string]int](r, "word in a map", `{"h":"x","g":"x","f":"x","e":"x","d":"x","c":"x","b":"two","a":1}`, "null in a map", `{"a":null}`,
		"list for a map", `[1]`, "word for a map", `"a"`)
	refusedValue[address](r, "missing in an object", `{"number":5}`, "wrong in an object", `{"street":"Main","number":"five"}`, "list for an object", `[]`,
		"number for an object", `5`)
	refusedValue[[]address](r, "missing in a list of objects", `[{"street":"Main"},{}]`)
	refusedValue[map[string]address](r, "wrong in a map of objects", `{"home":{"street":[]}}`)
	refusedValue[*int](r, "wrong for a pointer", `"many"`)
	refusedValue[int](r, "long word", `"`+strings.Repeat("long ", 100)+`"`, "escapes", `"caf\u00e9\n\"five\""`)
	want, err := os.ReadFile("testdata/refusals.txt")
	require.NoError(t, err)
	assert.Equal(t, string(want), r.lines.String())
}

// The memory for a list of large items grows with its valid items, not with the size of the body.
func TestListEndsAtItsFirstFault(t *testing.T) {
	type large struct {
		Name string       `json:"name,omitempty" jsonschema:"A name"`
		Rest [1000]string `json:"-"`
	}
	body := `{"v":[` + strings.Repeat("0,", 30000) + `0]}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, reply := callWith[requiredArg[[]large]](t, body)
	assert.Contains(t, reply, "v[0] must be an object")
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20), "30,001 items of 16 kB are 480 MB")
}
