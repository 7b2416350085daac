package diagnose_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/internal/rawjson"
)

const (
	testKeyA = "first shared key"
	testKeyB = "second shared key"
)

func indented(t *testing.T, compact, indent string) []byte {
	t.Helper()
	var buf bytes.Buffer
	require.NoError(t, json.Indent(&buf, []byte(compact), "", indent))
	return buf.Bytes()
}

func TestDiagnosisFindsWhatWouldMatch(t *testing.T) {
	const sent = `{"timestamp":"2026-08-31 06:56:30","head_id":"3f2b","n":1.50,"public_org_id":"Caf\u00e9 <&> a/b","event_type":"start_conversation"}`
	plain := strings.ReplaceAll(sent, `\u00e9`, "é")
	sum, err := hex.DecodeString(heads.Sign([]byte(sent), testKeyA))
	require.NoError(t, err)
	hexKey, base64Key := hex.EncodeToString([]byte("secret bytes")), base64.StdEncoding.EncodeToString([]byte("secret bytes"))
	tidy := indented(t, plain, "  ")
	spaced := strings.NewReplacer(`":`, `": `, `,"`, `, "`).Replace(plain)
	reordered := `{"event_type":"start_conversation","head_id":"3f2b","n":1.50,"public_org_id":"Café <&> a/b","timestamp":"2026-08-31 06:56:30"}`
	for _, row := range []struct {
		name            string
		body, signature string
		keys            []string
		want            []string
	}{
		{"nothing", sent, heads.Sign([]byte(sent), testKeyA), []string{testKeyB, testKeyA}, []string{"matches as it is", "key 2 of 2"}},
		{"space around the signature", sent, " " + heads.Sign([]byte(sent), testKeyA) + "\n", []string{testKeyA}, []string{"would match", "space or the quotes around the signature"}},
		{"prefix in capitals", sent, "SHA256=" + heads.Sign([]byte(sent), testKeyA), []string{testKeyA}, []string{"strip what is before the signature"}},
		{"prefix before base64", sent, "hmac-sha256: " + base64.StdEncoding.EncodeToString(sum), []string{testKeyA}, []string{"strip what is before the signature"}},
		{"hex in base64", sent, base64.StdEncoding.EncodeToString([]byte(heads.Sign([]byte(sent), testKeyA))), []string{testKeyA}, []string{"decode the signature from base64"}},
		{"line end in the key", sent, heads.Sign([]byte(sent), testKeyA), []string{testKeyB, testKeyA + "\n"}, []string{"key 2 of 2", "trim the space around the key"}},
		{"quotes around the key", sent, heads.Sign([]byte(sent), testKeyA), []string{`"` + testKeyA + `"`}, []string{"strip the quotes around the key"}},
		{"line end in the sender's key", sent, heads.Sign([]byte(sent), testKeyA+"\n"), []string{testKeyA}, []string{"add a line end to the key"}},
		{"key in hex", sent, heads.Sign([]byte(sent), "secret bytes"), []string{hexKey}, []string{"decode the key from hex"}},
		{"key in base64", sent, heads.Sign([]byte(sent), "secret bytes"), []string{base64Key}, []string{"decode the key from base64"}},
		{"empty key", sent, heads.Sign([]byte(sent), ""), []string{""}, []string{"signed with an empty key"}},
		{"line end after the body", sent + "\n", heads.Sign([]byte(sent), testKeyA), []string{testKeyA}, []string{"remove the line end after the body"}},
		{"line end cut off", sent, heads.Sign([]byte(sent+"\n"), testKeyA), []string{testKeyA}, []string{"add the line end after the body"}},
		{"space around the body", "  " + sent + " \n", heads.Sign([]byte(sent), testKeyA), []string{testKeyA}, []string{"remove the space around the body"}},
		{"byte order mark", "\ufeff" + sent, heads.Sign([]byte(sent), testKeyA), []string{testKeyA}, []string{"byte order mark"}},
		{"LF made CRLF", "{\r\n}", heads.Sign([]byte("{\n}"), testKeyA), []string{testKeyA}, []string{"LF was turned into CRLF"}},
		{"CRLF made LF", "{\n}", heads.Sign([]byte("{\r\n}"), testKeyA), []string{testKeyA}, []string{"CRLF was turned into LF"}},
		{"nothing was signed", sent, heads.Sign(nil, testKeyA), []string{testKeyA}, []string{"over no bytes at all"}},
		{"gateway", base64.StdEncoding.EncodeToString([]byte(sent)), heads.Sign([]byte(sent), testKeyA), []string{testKeyA}, []string{"decode the body from base64"}},
		{"text in text", string(rawjson.String(sent)), heads.Sign([]byte(sent), testKeyA), []string{testKeyA}, []string{"the body is a JSON string"}},
		{"indented, was compact", string(tidy), heads.Sign([]byte(plain), testKeyA), []string{testKeyA}, []string{"without spaces", "escaped as here"}},
		{"compact, was indented by 2", plain, heads.Sign(tidy, testKeyA), []string{testKeyA}, []string{"indented by 2"}},
		{"compact, was indented by 4", plain, heads.Sign(indented(t, plain, "    "), testKeyA), []string{testKeyA}, []string{"indented by 4"}},
		{"compact, was indented by tabs", plain, heads.Sign(indented(t, plain, "\t"), testKeyA), []string{testKeyA}, []string{"indented by tabs"}},
		{"compact, was spaced", plain, heads.Sign([]byte(spaced), testKeyA), []string{testKeyA}, []string{"with a space after each comma and colon"}},
		{"unescaped, was ASCII", plain, heads.Sign([]byte(sent), testKeyA), []string{testKeyA}, []string{"beyond ASCII escaped"}},
		{"escaped, was plain", sent, heads.Sign([]byte(plain), testKeyA), []string{testKeyA}, []string{"without needless escapes"}},
		{"unescaped, was escaped for HTML", plain, heads.Sign([]byte(strings.NewReplacer("<", `\u003c`, "&", `\u0026`, ">", `\u003e`).Replace(plain)), testKeyA), []string{testKeyA}, []string{"<, > and & escaped"}},
		{"unescaped, was with slashes", plain, heads.Sign([]byte(strings.ReplaceAll(sent, "/", `\/`)), testKeyA), []string{testKeyA}, []string{"slashes"}},
		{"in another order", plain, heads.Sign([]byte(reordered), testKeyA), []string{testKeyA}, []string{"sorted by name", "without needless escapes"}},
		{"three things at once", sent + "\n", "SHA256=" + heads.Sign([]byte(sent), testKeyA), []string{" " + testKeyA},
			[]string{"strip what is before the signature; trim the space around the key; remove the line end"}},

		{"another key", sent, heads.Sign([]byte(sent), testKeyB), []string{testKeyA}, []string{"No key matches", "another registration"}},
		{"cut off", sent[:50], heads.Sign([]byte(sent), testKeyA), []string{testKeyA}, []string{"No key matches", "not JSON"}},
		{"empty body", "", heads.Sign([]byte(sent), testKeyA), []string{testKeyA}, []string{"The body is empty"}},
		{"no keys", sent, heads.Sign([]byte(sent), testKeyA), nil, []string{"no shared key"}},
		{"only an empty key", sent, heads.Sign([]byte(sent), testKeyA), []string{""}, []string{"no shared key"}},
		{"no signature", sent, " ", []string{testKeyA}, []string{"can't be read", "empty", heads.SignatureHeader}},
		{"two signatures", sent, "abc,def", []string{testKeyA}, []string{"comma"}},
		{"SHA-1", sent, strings.Repeat("ab", 20), []string{testKeyA}, []string{"SHA-1"}},
		{"SHA-512", sent, strings.Repeat("ab", 64), []string{testKeyA}, []string{"SHA-512"}},
		{"something else", sent, "abc", []string{testKeyA}, []string{"3 characters"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			answer := heads.DiagnoseSignature([]byte(row.body), row.signature, row.keys...)
			for _, want := range row.want {
				assert.Contains(t, answer, want)
			}
			for _, secret := range append([]string{testKeyA, testKeyB, hexKey, base64Key, heads.Sign([]byte(row.body), testKeyA), heads.Sign([]byte(sent), testKeyA)}, row.keys...) {
				if strings.TrimSpace(secret) != "" {
					assert.NotContains(t, answer, secret)
				}
			}
		})
	}
}

func TestDiagnosisAcceptsAnyInput(t *testing.T) {
	for _, body := range []string{"", "{", `"`, `"\`, `{"a":"\`, `{}`, `[]`, `[[],{}]`, `"\ud800"`, "\xff", `{"a":{"b":[1,2,{"c":null}]}}`, `"🙂"`} {
		assert.NotEmpty(t, heads.DiagnoseSignature([]byte(body), heads.Sign([]byte("other"), testKeyA), testKeyA, ""))
	}
}
