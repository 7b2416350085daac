package compare

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
)

func TestValuesArePutBackIntoURLsAsWholeWords(t *testing.T) {
	x := NewExplainer(&headsfile.Environment{Name: "staging", Values: map[string]string{
		"app": "https://staging.example.com", "shop": "https://staging.example.com/shop", "host": "cdn.example.com", "base": "https://base.example.com/", "none": "", "shard": "eu",
	}})
	for text, want := range map[string]string{
		"https://staging.example.com": "${app}", "https://staging.example.com/x?a=b": "${app}/x?a=b", "https://staging.example.com:8443/x": "${app}:8443/x",
		"https://staging.example.community/x": "https://${env}.example.community/x", "https://staging.example.com/shop/1": "${shop}/1",
		"https://staging.example.com/shopping": "${app}/shopping", "https://a.cdn.example.com/x": "https://a.${host}/x",
		"https://acdn.example.com/x": "https://acdn.example.com/x", "https://base.example.com/x": "${base}x",
		"https://api-staging.example.org/eu/neu":            "https://api-${env}.example.org/${shard}/neu",
		"see https://staging.example.com/x, staging, or eu": "see ${app}/x, staging, or eu", "staging": "staging",
		"https://other.example.com/0123456789abcdef/eu": "https://other.example.com/0123456789abcdef/${shard}",
	} {
		assert.Equal(t, want, x.show(x.put(text)), text)
	}
	assert.Equal(t, "https://staging.example.com/\ue000", x.put("https://staging.example.com/\ue000"), "a text that holds a stand-in stays as it is")
	assert.Equal(t, "${app}/[redacted]/${shard}?key=[redacted]", x.showURL(x.put("https://staging.example.com/0123456789abcdef/eu?key=1")))
}

func TestValuesWithDifferentSchemesReadTheSame(t *testing.T) {
	at := func(app string) string {
		return NewExplainer(&headsfile.Environment{Name: "staging", Values: map[string]string{"app": app}}).put(app + "/x")
	}
	assert.Equal(t, at("https://app.example.com"), at("http://127.0.0.1:8080"))
}

func TestEqualValuesOfAFieldReadTheSame(t *testing.T) {
	assert.Equal(t, `{"a":1.5,"b":[12345678901234567890]}`, plainValue([]byte(`{"b": [12345678901234567890], "a": 1.50}`)))
	for _, nothing := range []string{"", "null", `""`, "[]", " {} "} {
		assert.Empty(t, plainValue([]byte(nothing)), nothing)
	}
	assert.Equal(t, "https://a.example.com/x", urlKey("https://A.example.com:443/x/"))
	assert.Equal(t, "https://A@b.example.com/", urlKey("https://A@b.example.com/"), "a URL with a user name is like no other")
}
