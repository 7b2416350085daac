package rawjson_test

import (
	"slices"
	"strings"
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
			var members []string
			for m := range rawjson.Members(value) {
				members = append(members, string(rawjson.AppendMember(nil, m.Key, build(m.Value))))
			}
			return []byte("{" + strings.Join(members, ",") + "}")
		case "array":
			var elements []string
			for element := range rawjson.Elements(value) {
				elements = append(elements, string(build(element)))
			}
			return []byte("[" + strings.Join(elements, ",") + "]")
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
