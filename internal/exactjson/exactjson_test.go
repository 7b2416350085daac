package exactjson

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/headsapi/heads-go/internal/rawjson"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type word string

type hidden struct{ text string }

func (h *hidden) UnmarshalText(text []byte) error {
	h.text = string(text)
	return nil
}

type inner struct {
	ID   string  `json:"id"`
	Size float64 `json:"size"`
}

type document struct {
	Text     string            `json:"text"`
	Word     word              `json:"word"`
	Flag     bool              `json:"flag"`
	Number   float64           `json:"number"`
	Whole    int64             `json:"whole"`
	List     []string          `json:"list"`
	Words    map[string]string `json:"words"`
	Optional *string           `json:"optional"`
	Kept     json.RawMessage   `json:"kept,omitempty"`
	Hidden   hidden            `json:"hidden"`
	Inner    inner             `json:"inner"`
	Other    *inner            `json:"other"`
	Ignored  string            `json:"-"`
	Untagged string
}

const full = ` {"text":"a\u00e9\"","word":"w","flag":true,"number":-1.5e3,"whole":12,"list":["a",null,"ä"],"words":{"x":"y","n":null},
	"optional":"o","kept":{"b": 1.0},"hidden":"h","inner":{"id":"i","size":1},"other":{"size":2},"Ignored":"x","-":"x","Untagged":"x","more":[1]} `

func TestDecodeReadsCopiesOfWhatPackageJSONReads(t *testing.T) {
	var got, want document
	require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(full, `"Untagged":"x",`, "")), &want))
	doc := []byte(full)
	require.NoError(t, Decode(doc, &got, Rules{}))
	clear(doc)
	assert.Equal(t, want, got)
	assert.Equal(t, "h", got.Hidden.text)
}

func TestDecodeTakesOtherSpellingsForOtherNames(t *testing.T) {
	var got document
	require.NoError(t, Decode([]byte(`{"Text":5,"TEXT":"a","te\u0078t":"b","Inner":7,"inner":{"ID":1,"id":"i"},"word\u017f":1}`), &got, Rules{}))
	assert.Equal(t, document{Text: "b", Inner: inner{ID: "i"}}, got)
}

func TestDecodeRefusesANameTwice(t *testing.T) {
	for doc, field := range map[string]string{
		`{"text":"a","text":"a"}`:                     "text",
		`{"text":null,"t\u0065xt":null}`:              "text",
		`{"kept":1,"kept":2}`:                         "kept",
		`{"inner":{"id":"a","size":1,"id":"b"}}`:      "inner.id",
		`{"more":1,"more":2,"other":{},"other":{}}`:   "other",
		`{"inner":{"id":"a"},"inner":{"size":"odd"}}`: "inner",
	} {
		err := Decode([]byte(doc), new(document), Rules{})
		assert.Equal(t, &DuplicateError{Field: field}, err, doc)
		assert.EqualError(t, err, `field "`+field+`" occurs twice`)
	}
	err := Decode([]byte(`{"other":{"id":5},"other":{}}`), new(document), Rules{})
	assert.ErrorAs(t, err, new(*json.UnmarshalTypeError), "the first fault counts")
	open := Rules{Open: func(string) bool { return true }}
	assert.ErrorAs(t, Decode([]byte(`{"other":{"id":"a","id":"b"}}`), new(document), open), new(*DuplicateError), "an open field hides no second name")
}

func TestDecodeNamesTheFieldOfAnotherType(t *testing.T) {
	for doc, want := range map[string]json.UnmarshalTypeError{
		`5`:                             {Value: "number", Type: reflect.TypeFor[document]()},
		`[]`:                            {Value: "array", Type: reflect.TypeFor[document]()},
		`{"text":5}`:                    {Value: "number", Type: reflect.TypeFor[string](), Field: "text"},
		`{"word":{}}`:                   {Value: "object", Type: reflect.TypeFor[word](), Field: "word"},
		`{"flag":"true"}`:               {Value: "string", Type: reflect.TypeFor[bool](), Field: "flag"},
		`{"number":"x"}`:                {Value: "string", Type: reflect.TypeFor[float64](), Field: "number"},
		`{"number":1e999}`:              {Value: "number", Type: reflect.TypeFor[float64](), Field: "number"},
		`{"whole":1.0}`:                 {Value: "number", Type: reflect.TypeFor[int64](), Field: "whole"},
		`{"whole":9223372036854775808}`: {Value: "number", Type: reflect.TypeFor[int64](), Field: "whole"},
		`{"list":{}}`:                   {Value: "object", Type: reflect.TypeFor[[]string](), Field: "list"},
		`{"list":["a",[]]}`:             {Value: "array with an array in it", Type: reflect.TypeFor[[]string](), Field: "list"},
		`{"words":[]}`:                  {Value: "array", Type: reflect.TypeFor[map[string]string](), Field: "words"},
		`{"words":{"secret":false}}`:    {Value: "object with a boolean in it", Type: reflect.TypeFor[map[string]string](), Field: "words"},
		`{"optional":5}`:                {Value: "number", Type: reflect.TypeFor[string](), Field: "optional"},
		`{"hidden":5}`:                  {Value: "number", Type: reflect.TypeFor[string](), Field: "hidden"},
		`{"inner":[]}`:                  {Value: "array", Type: reflect.TypeFor[inner](), Field: "inner"},
		`{"other":{"size":"x"}}`:        {Value: "string", Type: reflect.TypeFor[float64](), Field: "other.size"},
	} {
		assert.Equal(t, &want, Decode([]byte(doc), new(document), Rules{}), doc)
	}
}

func TestDecodeReadsNumbersInQuotes(t *testing.T) {
	var got document
	require.NoError(t, Decode([]byte(`{"number":"-1.5e3","whole":"12","inner":{"size":"0.75"}}`), &got, Rules{}))
	assert.Equal(t, document{Number: -1500, Whole: 12, Inner: inner{Size: 0.75}}, got)
	for _, odd := range []string{`{"number":"Inf"}`, `{"number":"0x1p-2"}`, `{"number":"1_0"}`, `{"number":" 1"}`, `{"number":"1 2"}`, `{"number":""}`, `{"number":["1"]}`, `{"whole":"1.5"}`} {
		assert.ErrorAs(t, Decode([]byte(odd), new(document), Rules{}), new(*json.UnmarshalTypeError), odd)
	}
}

func TestRulesOpenAndMendFields(t *testing.T) {
	var asked []string
	rules := Rules{
		Open: func(path string) bool {
			asked = append(asked, path)
			return path == "inner.size" || path == "list" || path == "other"
		},
		Mend: func(path string, value []byte) []byte {
			if path == "text" && rawjson.Kind(value) == "number" {
				return rawjson.String(string(value))
			}
			return nil
		},
	}
	got := document{List: []string{"old"}, Other: &inner{ID: "old"}}
	require.NoError(t, Decode([]byte(`{"text":12,"inner":{"id":"i","size":"big"},"list":["a",5],"other":7}`), &got, rules))
	assert.Equal(t, document{Text: "12", Inner: inner{ID: "i"}}, got)
	assert.Equal(t, []string{"inner.size", "list", "other"}, asked)
	assert.Error(t, Decode([]byte(`{"text":[]}`), &got, rules))
	assert.Error(t, Decode([]byte(`{"inner":{"id":5}}`), &got, rules))
	mends := Rules{Mend: func(string, []byte) []byte { return []byte(`{"id":5}`) }}
	assert.ErrorAs(t, Decode([]byte(`{"other":"x"}`), &got, mends), new(*json.UnmarshalTypeError), "what is mended must be of its type too")
}

func TestOnceAndUnique(t *testing.T) {
	assert.NoError(t, Once(`{"a":1,"b":2,"A":3,"c":1,"c":2}`, "a", "b"))
	assert.EqualError(t, Once([]byte(`{"b":1,"a":1,"\u0061":2}`), "a", "b"), `field "a" occurs twice`)
	assert.NoError(t, Once(`["a","a"]`, "a"))
	assert.EqualError(t, Unique(`{"a":{"b":1,"b":2},"c":1,"c":1}`), `field "c" occurs twice`)
	assert.NoError(t, Unique([]byte(`{"a":{"b":1,"b":2},"A":1}`)))
}

func TestKnownRefusesOtherNames(t *testing.T) {
	type outer struct {
		inner
		Name string `json:"name"`
	}
	assert.NoError(t, Known([]byte(`{"name":1,"id":2,"size":{"x":1,"x":2}}`), new(outer)))
	assert.EqualError(t, Known([]byte(`{"Name":1}`), new(outer)), `unknown field "Name"`)
	assert.EqualError(t, Known([]byte(`{"ID":1}`), new(outer)), `unknown field "ID"`)
	assert.EqualError(t, Known([]byte(`{"id":1,"id":1}`), new(outer)), `field "id" occurs twice`)
	assert.NoError(t, Known([]byte(`{"id":1}`), new(map[string]int)))
	assert.Error(t, Known([]byte(`{"id":1,"id":2}`), new(map[string]int)))
}

// FuzzDecode compares with package json on documents that it reads the same way:
// without other spellings and second names.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte(`{"text":"\ud800","list":[],"words":{},"number":-0,"whole":-9223372036854775808,"optional":null,"inner":null}`))
	f.Add([]byte("{\"text\":\"a\xff\",\"words\":{\"\xff\":\"b\"}}"))
	f.Add([]byte(`{"text":5,"number":1e400,"whole":1e2,"flag":null}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var got, want document
		if !json.Valid(doc) {
			_ = Decode(doc, &got, Rules{})
			return
		}
		err := Decode(doc, &got, Rules{})
		if rawjson.IsNull(doc) {
			require.Error(t, err)
			return
		}
		innerDoc, _ := rawjson.Value(doc, "inner")
		otherDoc, _ := rawjson.Value(doc, "other")
		if _, untagged := rawjson.Value(doc, "Untagged"); errors.As(err, new(*DuplicateError)) || untagged || hasVariant(innerDoc, "id", "size") ||
			hasVariant(otherDoc, "id", "size") || hasVariant(doc, "text", "word", "flag", "number", "whole", "list", "words", "optional", "kept", "hidden", "inner", "other", "Untagged") {
			return // package json may take a name for another one
		}
		wantErr := json.Unmarshal(doc, &want)
		require.Equal(t, wantErr == nil, err == nil, "%v\n%v", wantErr, err)
		if err == nil {
			require.Equal(t, want, got)
		}
	})
}

// hasVariant reports whether an object has one of the names twice, or in another letter case.
func hasVariant(doc []byte, names ...string) bool {
	for m := range rawjson.Members(doc) {
		if i := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, string(m.Key)) }); i >= 0 && names[i] != string(m.Key) {
			return true
		}
	}
	return Once(doc, names...) != nil
}
