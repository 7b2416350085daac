package mask_test

import (
	"encoding/json"
	"testing"

	"github.com/headsapi/heads-go/internal/mask"
	"github.com/stretchr/testify/assert"
)

func TestURLsLoseTheirQueryAndLongSegments(t *testing.T) {
	const long = "0123456789abcdef"
	for name, row := range map[string]struct{ given, field, callback string }{
		"plain":         {"https://a.example.com/x", "https://a.example.com/x", "https://a.example.com/x"},
		"query":         {"https://a.example.com/x?k=v&e=&f", "https://a.example.com/x?k=[redacted]&e=&[redacted]", "https://a.example.com/x?k=[redacted]&e=&[redacted]"},
		"fragment":      {"https://a.example.com/#t=v", "https://a.example.com/#[redacted]", "https://a.example.com/#[redacted]"},
		"user":          {"https://u:p@a.example.com/", "https://[redacted]@a.example.com/", "https://[redacted]@a.example.com/"},
		"long segment":  {"https://a.example.com/" + long + "/x", "https://a.example.com/" + long + "/x", "https://a.example.com/[redacted]/x"},
		"15 characters": {"https://a.example.com/" + long[1:], "https://a.example.com/" + long[1:], "https://a.example.com/" + long[1:]},
		"the tool":      {"https://a.example.com/get_weather_for_a_city", "https://a.example.com/get_weather_for_a_city", "https://a.example.com/get_weather_for_a_city"},
		"a long host":   {"https://a-host-with-a-long-name.example.com", "https://a-host-with-a-long-name.example.com", "https://a-host-with-a-long-name.example.com"},
		"no URL":        {"what?now=1", "what?now=1", "what?now=1"},
		"nothing":       {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, row.field, mask.URL(row.given))
			assert.Equal(t, row.callback, mask.CallbackURL(row.given, "get_weather_for_a_city"))
		})
	}
}

func TestJSONHidesTextsUnderTellingNames(t *testing.T) {
	for given, want := range map[string]string{
		`{"apiKey":"s","API_TOKEN":"s","clientSecret":"s","Password":"s"}`: `{"apiKey":"[redacted]","API_TOKEN":"[redacted]","clientSecret":"[redacted]","Password":"[redacted]"}`,
		`{"headers":{"Authorization":"Bearer s"},"credentials":["s"]}`:     `{"headers":{"Authorization":"[redacted]"},"credentials":["[redacted]"]}`,
		`{"author":"Ada"}`: `{"author":"Ada"}`,
		`{"key":"","keys":["s",{"a":"s"}],"tokens":4000,"secret":null}`: `{"key":"","keys":["[redacted]",{"a":"[redacted]"}],"tokens":4000,"secret":null}`,
		`{"model":{"temperature":0.10,"api_key":"s"},"name":"Ada"}`:     `{"model":{"temperature":0.10,"api_key":"[redacted]"},"name":"Ada"}`,
		`{"a":"https://x.example.com/?sig=s","b":"ä\n"}`:                `{"a":"https://x.example.com/?sig=[redacted]","b":"ä\n"}`,
		` [ "s" , 1 ] `: `["s",1]`,
		`"s"`:           `"s"`,
		`null`:          `null`,
	} {
		assert.Equal(t, want, string(mask.JSON(json.RawMessage(given))))
	}
}
