package heads_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
)

func TestParseAccessURL(t *testing.T) {
	for _, tt := range []struct {
		name, raw string
		base      string
		org, head string
		key       string
		reveal    string // "": the same as raw
	}{
		{"legacy form", legacyURL, chatBase, "MyOrg-1234", "li-28379", convertKey, ""},
		{"streaming form", streamURL, streamBase, "MyOrg-1234", "li-28379", convertKey, ""},
		{"any host", "https://a.b.example.org:8443/o/h?api_key=k", "https://a.b.example.org:8443", "o", "h", "k", ""},
		{"below a path", "https://example.com/live/eu/o/h?api_key=k", "https://example.com/live/eu", "o", "h", "k", ""},
		{"plain http", "http://localhost:8080/o/h?api_key=k", "http://localhost:8080", "o", "h", "k", ""},
		{"IPv6", "http://[::1]:8080/o/h?api_key=k", "http://[::1]:8080", "o", "h", "k", ""},
		{"slash at the end", "https://example.com/o/h/?api_key=k", "https://example.com", "o", "h", "k", "https://example.com/o/h?api_key=k"},
		{"doubled slashes", "https://example.com//x//o/h?api_key=k", "https://example.com/x", "o", "h", "k", "https://example.com/x/o/h?api_key=k"},
		{"fragment", "https://example.com/o/h?api_key=k#top", "https://example.com", "o", "h", "k", "https://example.com/o/h?api_key=k"},
		{"escaped", "https://example.com/a%20b/o%3Fx/h%25?api_key=k%26%2B", "https://example.com/a%20b", "o?x", "h%", "k&+", ""},
		{"further parameters", "https://example.com/o/h?lang=en&api_key=k&a=1&a=2", "https://example.com", "o", "h", "k", "https://example.com/o/h?api_key=k&a=1&a=2&lang=en"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := heads.Must(heads.ParseAccessURL(tt.raw))(t)
			assert.Equal(t, tt.base, got.Base)
			assert.Equal(t, tt.org, got.PublicOrgID)
			assert.Equal(t, tt.head, got.PublicHeadID)
			assert.Equal(t, tt.key, got.APIKey.Reveal())
			if tt.reveal == "" {
				tt.reveal = tt.raw
			}
			assert.Equal(t, tt.reveal, got.Reveal())
			again := heads.Must(heads.ParseAccessURL(got.Reveal()))(t)
			assert.Equal(t, got, again)
		})
	}
}

func TestParseAccessURLRefusesWhatIsIncomplete(t *testing.T) {
	for _, tt := range []struct{ name, raw, says string }{
		{"empty", "", "is blank"},
		{"no URL", "http://[::1" + convertKey, "is not an absolute https URL"},
		{"the key alone", convertKey, "is not an absolute https URL"},
		{"no scheme", "chat.example.com/o/h?api_key=" + convertKey, "is not an absolute https URL"},
		{"another scheme", "ftp://chat.example.com/o/h?api_key=" + convertKey, "is not an absolute https URL"},
		{"no host", "https:///o/h?api_key=" + convertKey, "is not an absolute https URL"},
		{"port alone", "https://:443/o/h?api_key=" + convertKey, "is not an absolute https URL"},
		{"zone", "http://[fe80::1%25eth0]/o/h?api_key=k", "is not an absolute https URL"},
		{"password", "https://me:" + convertKey + "@chat.example.com/o/h?api_key=k", "is not an absolute https URL"},
		{"a space at its end", "https://chat.example.com/o/h?api_key=" + convertKey + " ", "is not an absolute https URL"},
		{"no ids", "https://chat.example.com?api_key=" + convertKey, "on host chat.example.com lacks a public id"},
		{"one id", "https://chat.example.com/o?api_key=" + convertKey, "lacks a public id"},
		{"an empty id", "https://chat.example.com/x//h?api_key=" + convertKey, "lacks a public id"},
		{"no key", "https://chat.example.com/o/h?token=" + convertKey, "lacks the query parameter api_key"},
		{"an empty key", "https://chat.example.com/o/h?api_key=&x=" + convertKey, "lacks the query parameter api_key"},
		{"a key in the fragment", "https://chat.example.com/o/h#api_key=" + convertKey, "lacks the query parameter api_key"},
		{"a placeholder", "https://chat.example.com/o/h?api_key=<PUBLIC_API_KEY>&x=" + convertKey, "holds a placeholder"},
		{"YOUR_KEY", "https://chat.example.com/o/h?api_key=YOUR_KEY", "holds a placeholder"},
		{"YOUR_ORG", "https://chat.example.com/YOUR_ORG/h?api_key=" + convertKey, `holds the placeholder "YOUR_ORG"`},
		{"your_head", "https://chat.example.com/o/your_head?api_key=" + convertKey, `holds the placeholder "your_head"`},
		{"voiceID", "https://chat.example.com/o/voiceID?api_key=" + convertKey, `holds the placeholder "voiceID"`},
		{"a choice", "https://chat.example.com/o/head%20of%20your%20choice?api_key=" + convertKey, `holds the placeholder "head of your choice"`},
		{"YOUR_HOST", "https://YOUR_HOST/o/h?api_key=" + convertKey, `holds the placeholder "YOUR_HOST"`},
		{"another placeholder", "https://chat.example.com/o/h?api_key=string", "holds a placeholder"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := heads.ParseAccessURL(tt.raw)
			assert.Zero(t, got)
			invalid := heads.As[*heads.InvalidError](t, err)
			assert.Equal(t, "ParseAccessURL", invalid.Operation)
			assert.Contains(t, invalid.Problem, tt.says)
			assert.NotContains(t, err.Error(), convertKey)
		})
	}
}

func TestWithBaseMovesAnAccessURL(t *testing.T) {
	address := heads.Must(heads.ParseAccessURL(legacyURL + "&lang=en"))(t)
	for _, tt := range []struct{ name, base, want string }{
		{"host", "https://stream.example.com", "https://stream.example.com"},
		{"slash at the end", "https://stream.example.com/", "https://stream.example.com"},
		{"path", "https://example.com/live//", "https://example.com/live"},
		{"loopback", "http://127.0.0.1:8080", "http://127.0.0.1:8080"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			moved := heads.Must(address.WithBase(tt.base))(t)
			assert.Equal(t, tt.want, moved.Base)
			assert.Equal(t, tt.want+publicPath+"?api_key="+convertKey+"&lang=en", moved.Reveal())
			assert.Equal(t, chatBase, address.Base, "the original does not change")
		})
	}
}

func TestWithBaseRefusesOtherTexts(t *testing.T) {
	address := heads.Must(heads.ParseAccessURL(legacyURL))(t)
	for _, base := range []string{"", " ", "stream.example.com", "//stream.example.com", "ftp://stream.example.com", "https://", "http://stream.example.com",
		"https://stream.example.com?api_key=" + convertKey, "https://stream.example.com#x", "https://me:" + convertKey + "@stream.example.com"} {
		t.Run(base, func(t *testing.T) {
			moved, err := address.WithBase(base)
			assert.Zero(t, moved)
			invalid := heads.As[*heads.InvalidError](t, err)
			assert.Equal(t, "AccessURL.WithBase", invalid.Operation)
			assert.NotContains(t, err.Error(), convertKey)
		})
	}
}

func TestAccessURLPrintsAllButItsKey(t *testing.T) {
	address := heads.Must(heads.ParseAccessURL(legacyURL + "&session=hush-hush"))(t)
	const want = chatBase + publicPath + "?api_key=[redacted]"
	for _, verb := range []string{"%v", "%+v", "%s"} {
		assert.Equal(t, want, fmt.Sprintf(verb, address))
		assert.Equal(t, want, fmt.Sprintf(verb, &address))
	}
	assert.Empty(t, heads.AccessURL{}.String())
}

func TestClientAccessURLHasTheFormOfTheMode(t *testing.T) {
	for _, tt := range []struct {
		name         string
		chat, stream string
		streaming    bool
		want         string // base
	}{
		{"legacy as it is", "", "", false, "https://host.example.com"},
		{"streaming as it is", "", "", true, "https://host.example.com"},
		{"legacy moved", "https://chat.example.com", "https://stream.example.com", false, "https://chat.example.com"},
		{"streaming moved", "https://chat.example.com", "https://stream.example.com", true, "https://stream.example.com"},
		{"legacy, other base given", "", "https://stream.example.com", false, "https://host.example.com"},
		{"streaming, other base given", "https://chat.example.com", "", true, "https://host.example.com"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var opts []heads.Option
			if tt.chat != "" || tt.stream != "" {
				opts = append(opts, heads.WithAccessBases(tt.chat, tt.stream))
			}
			client := heads.Must(heads.New("https://api.example.com", "t", opts...))(t)
			head := &heads.Head{VideoStreaming: tt.streaming, PublicURL: heads.NewSecret("https://host.example.com" + publicPath + "?api_key=" + convertKey)}
			address := heads.Must(client.AccessURL(head))(t)
			assert.Equal(t, tt.want+publicPath+"?api_key="+convertKey, address.Reveal())
		})
	}
}

func TestClientAccessURLRefusesAHeadWithoutAPublicURL(t *testing.T) {
	client := heads.Must(heads.New("https://api.example.com", "t"))(t)
	for _, head := range []*heads.Head{nil, {}, {PublicURL: heads.NewSecret("https://host.example.com/o/h")}} {
		assert.ErrorIs(t, heads.ErrorOf(client.AccessURL(head)), heads.ErrInvalid)
	}
}

// A stored access URL is the text that Reveal returns.
func TestAccessURLCanBeStored(t *testing.T) {
	address := heads.Must(heads.ParseAccessURL(legacyURL))(t)
	read := heads.Must(heads.ParseAccessURL(address.Reveal()))(t)
	assert.Equal(t, address, read)
	masked := heads.Must(json.Marshal(address))(t)
	assert.NotContains(t, string(masked), convertKey)
}

// FuzzParseAccessURL checks that an access URL is read as a whole or refused,
// that it can be written and read again, and that its key is never printed.
func FuzzParseAccessURL(f *testing.F) {
	f.Add(legacyURL)
	f.Fuzz(func(t *testing.T, raw string) {
		address, err := heads.ParseAccessURL(raw)
		if err != nil {
			require.ErrorIs(t, err, heads.ErrInvalid)
			require.Zero(t, address)
			return
		}
		require.NotEmpty(t, address.PublicOrgID)
		require.NotEmpty(t, address.PublicHeadID)
		require.NotEmpty(t, address.APIKey)
		require.False(t, strings.HasSuffix(address.Base, "/"), address.Base)
		whole := address.Reveal()
		again, err := heads.ParseAccessURL(whole)
		require.NoError(t, err, whole)
		require.Equal(t, address, again)

		u := heads.Must(url.Parse(whole))(t)
		require.Equal(t, address.APIKey.Reveal(), u.Query().Get("api_key"))
		shown, _, _ := strings.Cut(whole, "?")
		require.Equal(t, shown+"?api_key=[redacted]", address.String())
		moved := heads.Must(address.WithBase("https://stream.example.com"))(t)
		require.True(t, strings.HasPrefix(moved.Reveal(), "https://stream.example.com/"))
		require.True(t, strings.HasSuffix(whole, strings.TrimPrefix(moved.Reveal(), "https://stream.example.com")))
	})
}
