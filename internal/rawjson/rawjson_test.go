package rawjson

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMembersWalksAnObject(t *testing.T) {
	type pair struct{ key, value string }
	for doc, want := range map[string][]pair{
		`{}`: nil, " {\n} ": nil, `[{"a":1}]`: nil, `"{"`: nil, ``: nil,
		`{"a":1,"b":"x","c":[1,{"d":2}],"e":{"f":[]},"g":null,"h":true}`: {{"a", "1"}, {"b", `"x"`}, {"c", `[1,{"d":2}]`}, {"e", `{"f":[]}`}, {"g", "null"}, {"h", "true"}},
		"{ \"a\" :\t1.0 ,\r\n\"b\": [ 1 , 2 ] }":                         {{"a", "1.0"}, {"b", "[ 1 , 2 ]"}},
		`{"a":"}{][,:","b":["}",{"c":"\"}"}]}`:                           {{"a", `"}{][,:"`}, {"b", `["}",{"c":"\"}"}]`}},
		`{"a\u0062\"":"\\","\\":"\\\""}`:                                 {{`ab"`, `"\\"`}, {`\`, `"\\\""`}},
		`{"a":1,"a":2}`:                                                  {{"a", "1"}, {"a", "2"}},
	} {
		var got []pair
		for m := range Members([]byte(doc)) {
			got = append(got, pair{string(m.Key), string(m.Value)})
		}
		assert.Equal(t, want, got, doc)
	}
	for m := range Members(`{"a":1,"b":2}`) {
		require.Equal(t, "a", m.Key)
		break
	}
}

func TestElementsWalksAnArray(t *testing.T) {
	for doc, want := range map[string][]string{
		`[]`: nil, " [\n] ": nil, `{"a":[1]}`: nil, ``: nil, "[ 1.0 ,\n \"a,b]\" ]": {"1.0", `"a,b]"`},
		`[1,"x",[1,[2]],{"a":[]},null,true]`: {"1", `"x"`, "[1,[2]]", `{"a":[]}`, "null", "true"},
	} {
		assert.Equal(t, want, slices.Collect(Elements(doc)), doc)
	}
}

func TestStringsWalksValuesAtEveryDepth(t *testing.T) {
	const doc = `{"a":"1","b" : ["2",{"c":"3\u0034","d":null}],"e\"":5,"f":"\\\"","":""}`
	assert.Equal(t, []string{"1", "2", "34", `\"`, ""}, slices.Collect(Strings([]byte(doc))))
	for range Strings([]byte(doc)) {
		break
	}
}

func TestRawMember(t *testing.T) {
	const doc = `{"a":{"b":1},"c":[{"b":2}],"d":3,"d":4,"\u0065":5,"N":null}`
	for key, want := range map[string]string{"a": `{"b":1}`, "d": "4", "e": "5", "N": "null"} {
		value, ok := Value([]byte(doc), key)
		assert.True(t, ok, key)
		assert.Equal(t, want, string(value), key)
	}
	for _, key := range []string{"b", "n", "A", "", `\u0065`} {
		_, ok := Value([]byte(doc), key)
		assert.False(t, ok, key)
	}
}

func TestWithMemberChangesOneMemberAndNoOtherByte(t *testing.T) {
	for _, tt := range []struct{ name, doc, key, value, want string }{
		{"a new one in no document", ``, "b", `9`, `{"b":9}`},
		{"remove one in the middle", `{"a":1,"b":2,"c":3}`, "b", "", `{"a":1,"c":3}`},
		{"remove one that is not there", `{ "a" : 1 }`, "b", "", `{ "a" : 1 }`},
		{"of one name twice, the first place and the new value", `{"a":1,"b":2,"a":3}`, "a", "9", `{"a":9,"b":2}`},
		{"remove one that is there twice", `{"a":1,"b":2,"a":3}`, "a", "", `{"b":2}`},
		{"a name with escapes", `{"\u0061":1}`, "a", "9", `{"\u0061":9}`},
		{"inner objects are left alone", `{"x":{"a":1},"y":[{"a":2}]}`, "a", "9", `{"x":{"a":1},"y":[{"a":2}],"a":9}`},
		{"another value", "{\n\t\"a\" : 1 ,\n\t\"b\":  2\n}", "b", "9", "{\n\t\"a\" : 1 ,\n\t\"b\":  9\n}"},
		{"the first", "{\n  \"a\": 1,\n  \"b\": 2\n}", "a", "9", "{\n  \"a\": 9,\n  \"b\": 2\n}"},
		{"a new one", "{\n  \"a\": 1\n}", "b", "9", "{\n  \"a\": 1,\"b\":9\n}"},
		{"a new one in an empty object", "{ \n}", "b", "9", "{\"b\":9 \n}"},
		{"remove the first", "{\n  \"a\": 1,\n\n  \"b\": 2\n}", "a", "", "{\n\n  \"b\": 2\n}"},
		{"remove the last", "{\n  \"a\": 1,\n  \"b\": 2\n}", "b", "", "{\n  \"a\": 1\n}"},
		{"remove the only one", "{\n  \"a\": 1\n}", "a", "", "{\n}"},
		{"a comma in a name", `{"x,y":1,"a":2}`, "a", "9", `{"x,y":1,"a":9}`},
		{"a comma in the name after the one removed", `{"a":2,"x,y":1}`, "a", "", `{"x,y":1}`},
		{"odd numbers", `{"n":1.0,"e":1E3,"big":12345678901234567890,"a":0}`, "a", "9", `{"n":1.0,"e":1E3,"big":12345678901234567890,"a":9}`},
	} {
		doc := []byte(tt.doc)
		got := With(doc, tt.key, append([]byte(nil), tt.value...)) // "" is nil
		assert.Equal(t, tt.want, string(got), tt.name)
		assert.Equal(t, tt.doc, string(doc), "the document itself is left alone")
		clear(got)
		assert.Equal(t, tt.doc, string(doc), "the result is a copy")
	}
}

func TestUnquoteExactKeepsWhatIsNotUnicode(t *testing.T) {
	for raw, want := range map[string]string{
		`""`:                         "",
		`"a\"\\\/\b\f\n\r\t\u0000é"`: "a\"\\/\b\f\n\r\t\x00é",
		`"\ud83d\uDE42"`:             "🙂",
		`"\ufffd` + "\ufffd\"":       "\ufffd\ufffd",
		"\"\xff\\u00e9\xfe\"":        "\xffé\xfe",
		`"\ud800"`:                   "\xed\xa0\x80",
		`"\udfff\ud800"`:             "\xed\xbf\xbf\xed\xa0\x80",
		`"\ud800\ud83d\ude42"`:       "\xed\xa0\x80🙂",
		`"\ud800\n"`:                 "\xed\xa0\x80\n",
		`"\ud800u"`:                  "\xed\xa0\x80u",
	} {
		require.True(t, json.Valid([]byte(raw)), raw)
		got := UnquoteExact([]byte(raw))
		assert.Equal(t, want, got, raw)
		if utf8.ValidString(got) {
			assert.Equal(t, Unquote(raw), got, raw)
		}
	}
}

func TestAppendStringWritesJSON(t *testing.T) {
	for _, s := range []string{"", "plain", `\`, `"`, "\x1f", `quote " and \ backslash`, "line\nbreak\t\x00\x1f", "é 😀 \u2028 \x7f", "<b>&amp;'", "bad \xff utf8"} {
		written := AppendString([]byte("x"), s)[1:]
		var read string
		require.NoError(t, json.Unmarshal(written, &read), "%q", written)
		want := string([]rune(s))
		assert.Equal(t, want, read)
		assert.Equal(t, want, Unquote(written))
	}
	assert.Equal(t, `"<b>&'"`, string(AppendString(nil, "<b>&'")), "texts are sent as they are written")
}

func TestEncodeJSONEscapesNoHTML(t *testing.T) {
	raw, err := Encode(map[string]string{"a": "<b>&"})
	require.NoError(t, err)
	assert.Equal(t, `{"a":"<b>&"}`, string(raw))
	_, err = Encode(func() {})
	assert.Error(t, err)
}

func TestJSONKind(t *testing.T) {
	for raw, want := range map[string]string{
		`"a"`: "string", `{}`: "object", ` [1]`: "array", "true": "boolean", "false": "boolean", "\n null ": "null", "-1e3": "number", "0": "number", "": "nothing", "  ": "nothing",
	} {
		assert.Equal(t, want, Kind([]byte(raw)), "%q", raw)
	}
}

// membersByJSON is Members written with encoding/json alone.
func membersByJSON(t *testing.T, doc []byte) (names []string, values []string) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(doc))
	_, err := decoder.Token()
	require.NoError(t, err)
	for decoder.More() {
		name, err := decoder.Token()
		require.NoError(t, err)
		var value json.RawMessage
		require.NoError(t, decoder.Decode(&value))
		names, values = append(names, name.(string)), append(values, string(value))
	}
	return names, values
}

// FuzzWith checks that no document causes a panic in any function. In a valid object, one member is
// set or removed, and all others keep their order and bytes.
func FuzzWith(f *testing.F) {
	for _, doc := range []string{ // not valid
		"", " ", "{", "}", "[", "]", `"`, `"a`, `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,"`, `{"a" 1}`, `{a:1}`, `{"a":}`, `{,}`, `{"a":1 "b":2}`,
		`{"a":]}`, `{"a":[}`, `{"a":"\`, `{"a":"\u00`, `{"\u12":1}`, "[1", "[1,", "[,]", `["a`, "[[[[", "{{{{", `{"a":{"b":{`, ":", ",", "nul", "\xff", "{\"\xff\":1}", "[1 2]", "]]]]", "[}", `{"a":1}}`,
	} {
		f.Add([]byte(doc), "a", []byte("1"))
		f.Add([]byte(doc), "a", []byte(nil))
	}
	for _, doc := range []string{
		`{}`, ` { } `, `{"a":1}`, `{"a":1,"b":2}`, `{"b":2,"a":1}`, `{"a":1,"a":2}`, "{\n  \"a\" : 1.0 ,\n  \"b\":[ 1 , {\"a\":2} ]\n}\n",
		`{"\u0061":1,"x":"}","y":"\\\""}`, `{"":0,"A":1}`, `{"n":12345678901234567890,"e":1E+3}`, `[{"a":1}]`, `"{"`, `{"a,b":1,"a":2}`,
	} {
		for _, value := range []string{`2`, `{"x":[]}`, ` "a" `, ""} {
			f.Add([]byte(doc), "a", []byte(value))
			f.Add([]byte(doc), "new", []byte(value))
		}
		f.Add([]byte(doc), "", []byte("null"))
		f.Add([]byte(doc), "\xff\"<", []byte("null"))
	}
	f.Fuzz(func(t *testing.T, doc []byte, key string, value []byte) {
		value = append([]byte(nil), bytes.TrimSpace(value)...) // nil if it is empty
		before := bytes.Clone(doc)
		out := With(doc, key, value)
		for range Elements(doc) {
		}
		for range Strings(doc) {
		}
		Value(doc, key)
		Unquote(doc)
		Kind(doc)
		require.Equal(t, before, doc)
		valid := json.Valid(doc) && Kind(doc) == "object" && utf8.Valid(doc)
		if !valid || !utf8.ValidString(key) || value != nil && !json.Valid(value) {
			return
		}
		require.True(t, json.Valid(out), "%q", out)
		oldNames, oldValues := membersByJSON(t, doc)
		names, values := membersByJSON(t, out)
		got, ok := Value(out, key)
		require.Equal(t, value != nil, ok)
		if ok {
			require.JSONEq(t, string(value), string(got))
		}
		others := func(names, values []string) (kept []string) {
			for i, name := range names {
				if name != key {
					kept = append(kept, name, values[i])
				}
			}
			return kept
		}
		require.Equal(t, others(oldNames, oldValues), others(names, values))
		if value != nil {
			require.Len(t, others(names, values), 2*len(names)-2, "it is there once")
		}
		// Writing the same value again changes nothing, and writing the old value
		// back returns the old bytes.
		require.Equal(t, string(out), string(With(out, key, value)))
		if occurrences := len(oldNames)*2 - len(others(oldNames, oldValues)); occurrences == 2 {
			same, _ := Value(doc, key)
			require.Equal(t, string(bytes.TrimLeft(doc, " \n\t\r")), string(With(doc, key, same)))
		}
	})
}
