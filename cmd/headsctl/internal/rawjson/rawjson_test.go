package rawjson_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
)

func TestTakenApartAndPutTogetherAJSONDocumentIsTheSame(t *testing.T) {
	document := `{"z":12345678901234567890,"a":0.10,"<&>":["x é\u2028\"",null,true,{"b":{}}],"z":[]}`
	var build func(value []byte) []byte
	build = func(value []byte) []byte {
		switch rawjson.Kind(value) {
		case "object":
			out := []byte{'{'}
			for m := range rawjson.Members(value) {
				if len(out) > 1 {
					out = append(out, ',')
				}
				out = rawjson.AppendMember(out, m.Key, build(m.Value))
			}
			return append(out, '}')
		case "array":
			out := []byte{'['}
			for element := range rawjson.Elements(value) {
				if len(out) > 1 {
					out = append(out, ',')
				}
				out = append(out, build(element)...)
			}
			return append(out, ']')
		case "string":
			return rawjson.String(rawjson.Unquote(value))
		}
		return value
	}
	assert.Equal(t, document, string(build([]byte(document))))
}

func TestOtherValuesHaveNoParts(t *testing.T) {
	for value, kind := range map[string]string{"null": "null", "1": "number", "-1": "number", "true": "boolean", `"s"`: "string", " {": "object", "[": "array", "": ""} {
		assert.Equal(t, kind, rawjson.Kind([]byte(value)), value)
		assert.Empty(t, slices.Collect(rawjson.Members([]byte(value))), value)
		assert.Empty(t, slices.Collect(rawjson.Elements([]byte(value))), value)
		if kind != "string" {
			assert.Empty(t, rawjson.Unquote([]byte(value)), value)
		}
	}
	for range rawjson.Members([]byte(`{"a":1,"b":2}`)) {
		break
	}
	assert.Len(t, slices.Collect(rawjson.Members([]byte(`{"a":1,"b":`))), 1, "what is whole of a broken object")
}
