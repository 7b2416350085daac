package toolargs_test

import (
	"encoding/json"
	"errors"
	"math"
	"net/netip"
	"os"
	"reflect"
	"runtime"
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
	namedTest struct {
		name string
		run  func(*testing.T)
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

func (g *grade) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"low"`:
		*g = 1
	case `"high"`:
		*g = 2
	default:
		return errors.New("no grade")
	}
	return nil
}

func (g grade) MarshalJSON() ([]byte, error) {
	return []byte([]string{`""`, `"low"`, `"high"`}[g]), nil
}

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
	t.Helper()
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

// roundTrip sends value through a tool, as a required argument and as each
// kind of optional one.
func roundTrip[T any](name, wireType string, value T) namedTest {
	return namedTest{name, func(t *testing.T) {
		encoded, err := json.Marshal(value)
		require.NoError(t, err)
		body := `{"v":` + string(encoded) + `,"session_metadata":{"session_id":"s-1"}}`

		t.Run("required", func(t *testing.T) {
			field := fieldsOf[requiredArg[T]](t, nil).List()[0]
			assert.Equal(t, []string{"v", wireType, "A value"}, []string{field.Name, field.WireType(), field.Description})
			got, reply := callWith[requiredArg[T]](t, body)
			require.Equal(t, done, reply)
			assert.Equal(t, value, got.V)
			for _, without := range []string{`{}`, `{"v":null}`} {
				_, reply := callWith[requiredArg[T]](t, without)
				assert.Equal(t, "v is missing; ask the user for it", reply)
			}
		})
		t.Run("optional", func(t *testing.T) {
			got, reply := callWith[optionalArg[T]](t, body)
			require.Equal(t, done, reply)
			assert.Equal(t, value, got.V)
			for _, without := range []string{`{}`, `{"v":null}`} {
				got, reply := callWith[optionalArg[T]](t, without)
				require.Equal(t, done, reply)
				assert.Zero(t, got.V)
			}
		})
		t.Run("pointer", func(t *testing.T) {
			got, reply := callWith[pointerArg[T]](t, body)
			require.Equal(t, done, reply)
			require.NotNil(t, got.V)
			assert.Equal(t, value, *got.V)
			for _, without := range []string{`{}`, `{"v":null}`} {
				got, reply := callWith[pointerArg[T]](t, without)
				require.Equal(t, done, reply)
				assert.Nil(t, got.V)
			}
		})
	}}
}

func TestEveryKindMakesTheRoundTrip(t *testing.T) {
	seven := 7
	moment := time.Date(2026, 8, 31, 6, 56, 30, 5e8, time.UTC)
	for _, row := range []namedTest{
		roundTrip("string", "string", "Zażółć \"gęślą\"\n🌦️"),
		roundTrip("empty string", "string", ""),
		roundTrip("named string", "string", color("red")),
		roundTrip("bool", "boolean", true),
		roundTrip("int", "integer", -7),
		roundTrip("int8", "integer", int8(math.MinInt8)),
		roundTrip("int16", "integer", int16(math.MaxInt16)),
		roundTrip("int32", "integer", int32(math.MinInt32)),
		roundTrip("int64", "integer", int64(math.MinInt64)),
		roundTrip("uint", "integer", uint(7)),
		roundTrip("uint8", "integer", uint8(math.MaxUint8)),
		roundTrip("uint16", "integer", uint16(math.MaxUint16)),
		roundTrip("uint32", "integer", uint32(math.MaxUint32)),
		roundTrip("uint64", "integer", uint64(math.MaxUint64)),
		roundTrip("float32", "number", float32(0.1)),
		roundTrip("float64", "number", 1e-300),
		roundTrip("time", "string", moment),
		roundTrip("time with its text", "string", stamp{Time: moment, Text: "2026-08-31 06:56:30.5Z"}),
		roundTrip("text of a form", "string", netip.MustParseAddr("203.0.113.7")),
		roundTrip("JSON of a form", "integer", grade(2)),
		roundTrip("bytes", "string", []byte{0, 1, 254, 255}),
		roundTrip("raw object", "object", json.RawMessage(`{"a":[1,2.50,null]}`)),
		roundTrip("raw number", "object", json.RawMessage(`1.50`)),
		roundTrip("list", "array", []string{"a", ""}),
		roundTrip("empty list", "array", []string{}),
		roundTrip("list of lists", "array", [][]int{{1, 2}, {}}),
		roundTrip("list of pointers", "array", []*int{&seven, nil}),
		roundTrip("list of raw values", "array", []json.RawMessage{json.RawMessage(`null`), json.RawMessage(`"a"`)}),
		roundTrip("array", "array", [2]float64{1.5, -2}),
		roundTrip("map", "object", map[color]int{"red": 1, "": 2}),
		roundTrip("empty map", "object", map[string]bool{}),
		roundTrip("map of lists", "object", map[string][]bool{"a": {true, false}}),
		roundTrip("struct", "object", address{Street: "Main", Number: &seven, Lines: []string{"2nd floor"}}),
		roundTrip("list of structs", "array", []address{{Street: "Main"}, {Street: "High", Number: &seven}}),
	} {
		t.Run(row.name, row.run)
	}
}

// reads checks that raw is read as value.
func reads[T any](name, raw string, value T) namedTest {
	return namedTest{name, func(t *testing.T) {
		got, reply := callWith[requiredArg[T]](t, `{"v": `+raw+` }`)
		require.Equal(t, done, reply)
		assert.Equal(t, value, got.V)
	}}
}

func TestArgumentsAreReadLeniently(t *testing.T) {
	noon := time.Date(2026, 8, 31, 12, 0, 0, 0, time.UTC)
	for _, row := range []namedTest{
		reads("integer in a string", `"5"`, 5),
		reads("negative integer in a string", `"-5"`, -5),
		reads("integer with a plus", `"+5"`, 5),
		reads("integer with spaces", `" 5 "`, 5),
		reads("integer with zeros in front", `"007"`, 7),
		reads("integer with a point", `5.0`, 5),
		reads("integer with a point in a string", `"5.00"`, 5),
		reads("integer with an exponent", `5e2`, 500),
		reads("integer with a point and an exponent", `1.5E+1`, 15),
		reads("integer with a negative exponent", `1500e-2`, 15),
		reads("zero with a negative exponent", `0e-5`, 0),
		reads("minus zero", `-0`, 0),
		reads("unsigned minus zero", `-0.0`, uint8(0)),
		reads("unsigned in a string", `"255"`, uint8(255)),
		reads("integer that no float holds", `"9007199254740993.0"`, int64(9007199254740993)),
		reads("highest unsigned with a point", `18446744073709551615.0`, uint64(math.MaxUint64)),
		reads("lowest integer in a string", `"-9223372036854775808"`, int64(math.MinInt64)),
		reads("number in a string", `"5.5"`, 5.5),
		reads("number with an exponent in a string", `"-1.5e-3"`, -0.0015),
		reads("integer for a number", `5`, 5.0),
		reads("number without a zero in front", `".5"`, 0.5),
		reads("true in a string", `"true"`, true),
		reads("True in a string", `" True "`, true),
		reads("yes", `"Yes"`, true),
		reads("one", `1`, true),
		reads("one in a string", `"1"`, true),
		reads("false in a string", `"FALSE"`, false),
		reads("no", `"no"`, false),
		reads("zero", `0`, false),
		reads("number for a string", `12.50`, "12.50"),
		reads("boolean for a string", `true`, "true"),
		reads("number for a named string", `7`, color("7")),
		reads("number for a text of a form", `7`, letter('7')),
		reads("bytes that are not bytes in JSON", `["a","b"]`, []letter{'a', 'b'}),
		reads("struct with its own JSON", `"first"`, choice{"first"}),
		reads("string for a list", `"a"`, []string{"a"}),
		reads("number for a list of strings", `5`, []string{"5"}),
		reads("number in a string for a list", `"5"`, []int{5}),
		reads("object for a list", `{"street":"Main"}`, []address{{Street: "Main"}}),
		reads("list for a list of lists", `[1,"2"]`, [][]int{{1}, {2}}),
		reads("value for an array of one", `5`, [1]int{5}),
		reads("list in a string", `" [\"a\",\"b\"]"`, []string{"a", "b"}),
		reads("empty list in a string", `"[]"`, []string{}),
		reads("array in a string", `"[1,\"2\"]"`, [2]int{1, 2}),
		reads("text that is no list", `"[a]"`, []string{"[a]"}),
		reads("a list's item that is one itself", `["[1]"]`, []string{"[1]"}),
		reads("object in a string for a list", `"{\"street\":5}"`, []address{{Street: "5"}}),
		reads("map in a string", `"{\"a\":\"yes\"}"`, map[string]bool{"a": true}),
		reads("strings in a list of numbers", `["1",2,"3.0"]`, []int{1, 2, 3}),
		reads("strings in a map of booleans", `{"a":"yes","b":0}`, map[string]bool{"a": true, "b": false}),
		reads("strings in an object", `{"street":5}`, address{Street: "5"}),
		reads("RFC 3339", `"2026-08-31T14:00:00+02:00"`, stamp{Time: noon.In(time.FixedZone("", 7200)), Text: "2026-08-31T14:00:00+02:00"}),
		reads("time with a space", `"2026-08-31 12:00:00Z"`, noon),
		reads("time without seconds", `"2026-08-31T12:00Z"`, noon),
		reads("time with a space and without seconds", `" 2026-08-31 12:00Z "`, noon),
		reads("date", `"2026-08-31"`, noon.Add(-12*time.Hour)),
		reads("escapes", `"caf\u00e9 \ud83c\udf26"`, "café 🌦"),
		reads("spaces inside", "{ \"street\" : \"Main\" ,\n \"lines\" : [ \"a\" , \"b\" ] }", address{Street: "Main", Lines: []string{"a", "b"}}),
	} {
		t.Run(row.name, row.run)
	}
}

func TestBlankStringLeavesOutWhatIsNotText(t *testing.T) {
	for _, row := range []namedTest{
		blank("integer", 0), blank("number", 0.0), blank("boolean", false), blank("time", time.Time{}),
		blank("duration", time.Duration(0)), blank("time with its text", stamp{}), blank("text of a form", netip.Addr{}),
		blank("list", []string(nil)), blank("map", map[string]int(nil)), blank("object", address{}),
	} {
		t.Run(row.name, row.run)
	}
	t.Run("but not text", func(t *testing.T) {
		got, reply := callWith[pointerArg[string]](t, `{"v":" "}`)
		require.Equal(t, done, reply)
		require.NotNil(t, got.V)
		assert.Equal(t, " ", *got.V)
	})
}

func blank[T any](name string, zero T) namedTest {
	return namedTest{name, func(t *testing.T) {
		_, reply := callWith[requiredArg[T]](t, `{"v":" "}`)
		assert.Equal(t, "v is missing; ask the user for it", reply)
		for _, body := range []string{`{"v":""}`, `{"v":"\n\t"}`, `{"v":"\u0020"}`} {
			got, reply := callWith[optionalArg[T]](t, body)
			assert.Equal(t, done, reply, body)
			assert.Equal(t, zero, got.V, body)
		}
	}}
}

// refusal is one line of the golden table.
type refusal struct{ name, message string }

func refuses[In any](t *testing.T, name, body string) refusal {
	t.Helper()
	got, reply := callWith[In](t, body)
	require.Zero(t, got, "the function is not called: %s", name)
	return refusal{name, strings.ReplaceAll(reply, "\n", " ")} // the handler writes one line
}

func refusesValue[T any](t *testing.T, name, raw string) refusal {
	t.Helper()
	return refuses[requiredArg[T]](t, name, `{"v":`+raw+`}`)
}

// TestModelIsToldWhatIsWrong compares with testdata/refusals.txt, a line
// "name: message" for each row.
func TestModelIsToldWhatIsWrong(t *testing.T) {
	type trip struct {
		From  string  `json:"from" jsonschema:"From"`
		To    string  `json:"to" jsonschema:"To"`
		Days  int     `json:"days" jsonschema:"Days"`
		Price float64 `json:"price,omitempty" jsonschema:"Price"`
	}
	long := `"` + strings.Repeat("long ", 100) + `"`
	var lines []string
	for _, row := range []refusal{
		refuses[trip](t, "one missing", `{"from":"Oslo","to":"Rome"}`),
		refuses[trip](t, "two missing", `{"from":"Oslo"}`),
		refuses[trip](t, "three missing", `{}`),
		refuses[trip](t, "missing and wrong", `{"from":"Oslo","days":"many","price":"high"}`),
		refuses[trip](t, "wrong optional", `{"from":"Oslo","to":"Rome","days":1,"price":"high"}`),
		refusesValue[string](t, "object for text", `{"a":1}`),
		refusesValue[string](t, "list for text", `["a"]`),
		refusesValue[bool](t, "word for boolean", `"maybe"`),
		refusesValue[bool](t, "number for boolean", `2`),
		refusesValue[bool](t, "list for boolean", `[true]`),
		refusesValue[int](t, "word for integer", `"many"`),
		refusesValue[int](t, "fraction for integer", `5.5`),
		refusesValue[int](t, "fraction by exponent for integer", `5e-1`),
		refusesValue[int](t, "boolean for integer", `true`),
		refusesValue[int](t, "object for integer", `{}`),
		refusesValue[int](t, "list for integer", `[5]`),
		refusesValue[int](t, "hexadecimal for integer", `"0x10"`),
		refusesValue[int](t, "separators for integer", `"1,000"`),
		refusesValue[int](t, "two numbers for integer", `"1-2"`),
		refusesValue[int](t, "two points for integer", `"1.2.3"`),
		refusesValue[int](t, "sign alone for integer", `"-"`),
		refusesValue[int](t, "exponent without end for integer", `1e999999999`),
		refusesValue[int](t, "exponent without digits for integer", `"5e"`),
		refusesValue[int](t, "exponent alone for integer", `"e5"`),
		refusesValue[int8](t, "int8 above", `128`),
		refusesValue[int8](t, "int8 below", `-129`),
		refusesValue[int16](t, "int16 above", `"32768"`),
		refusesValue[int32](t, "int32 below", `-2147483649`),
		refusesValue[int64](t, "int64 above", `9223372036854775808`),
		refusesValue[int64](t, "int64 below", `-9223372036854775809`),
		refusesValue[uint8](t, "uint8 above", `256`),
		refusesValue[uint8](t, "uint8 below", `-1`),
		refusesValue[uint16](t, "uint16 above", `65536`),
		refusesValue[uint32](t, "uint32 above", `5e9`),
		refusesValue[uint64](t, "uint64 above", `18446744073709551616`),
		refusesValue[uint](t, "word for unsigned", `"few"`),
		refusesValue[float64](t, "word for number", `"high"`),
		refusesValue[float64](t, "infinity for number", `"Inf"`),
		refusesValue[float64](t, "not a number for number", `"NaN"`),
		refusesValue[float64](t, "hexadecimal for number", `"0x1p-2"`),
		refusesValue[float64](t, "two numbers for number", `"1-2"`),
		refusesValue[float64](t, "list for number", `[1.5]`),
		refusesValue[float64](t, "float64 above", `1e400`),
		refusesValue[float32](t, "float32 above", `1e39`),
		refusesValue[time.Time](t, "word for time", `"tomorrow"`),
		refusesValue[time.Time](t, "impossible date for time", `"2026-02-30"`),
		refusesValue[time.Time](t, "number for time", `1756623390`),
		refusesValue[time.Time](t, "object for time", `{}`),
		refusesValue[time.Time](t, "no zone for time", `"2026-08-31 12:00"`),
		refusesValue[stamp](t, "word for time with its text", `"tomorrow"`),
		refusesValue[stamp](t, "no zone for time with its text", `"2026-08-31T12:00:00.5"`),
		refusesValue[time.Duration](t, "word for duration", `"soon"`),
		refusesValue[time.Duration](t, "months for duration", `"P1M"`),
		refusesValue[time.Duration](t, "list for duration", `[90]`),
		refusesValue[netip.Addr](t, "word for text of a form", `"localhost"`),
		refusesValue[netip.Addr](t, "list for text of a form", `["::1"]`),
		refusesValue[grade](t, "word for JSON of a form", `"middling"`),
		refusesValue[[]byte](t, "word for bytes", `"not base64!"`),
		refusesValue[[]byte](t, "number for bytes", `1234`),
		refusesValue[[]byte](t, "list for bytes", `[1,2]`),
		refusesValue[[]int](t, "word in a list", `[1,"two",3,"four"]`),
		refusesValue[[]int](t, "null in a list", `[1,null]`),
		refusesValue[[]int](t, "word for a list", `"two"`),
		refusesValue[[][]int](t, "word in a list of lists", `[[1],[2,"three"]]`),
		refusesValue[[2]int](t, "too few for an array", `[1]`),
		refusesValue[[2]int](t, "too many for an array", `[1,2,3]`),
		refusesValue[[2]int](t, "word in an array", `[1,"two"]`),
		refusesValue[map[string]int](t, "word in a map", `{"h":"x","g":"x","f":"x","e":"x","d":"x","c":"x","b":"two","a":1}`),
		refusesValue[map[string]int](t, "null in a map", `{"a":null}`),
		refusesValue[map[string]int](t, "list for a map", `[1]`),
		refusesValue[map[string]int](t, "word for a map", `"a"`),
		refusesValue[address](t, "missing in an object", `{"number":5}`),
		refusesValue[address](t, "wrong in an object", `{"street":"Main","number":"five"}`),
		refusesValue[address](t, "list for an object", `[]`),
		refusesValue[address](t, "number for an object", `5`),
		refusesValue[[]address](t, "missing in a list of objects", `[{"street":"Main"},{}]`),
		refusesValue[map[string]address](t, "wrong in a map of objects", `{"home":{"street":[]}}`),
		refusesValue[*int](t, "wrong for a pointer", `"many"`),
		refusesValue[int](t, "long word", long),
		refusesValue[int](t, "escapes", `"caf\u00e9\n\"five\""`),
	} {
		lines = append(lines, row.name+": "+row.message)
	}
	want, err := os.ReadFile("testdata/refusals.txt")
	require.NoError(t, err)
	assert.Equal(t, string(want), strings.Join(lines, "\n")+"\n")
}

// The memory for a list of large items grows with its valid items, not with the
// size of the body.
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
