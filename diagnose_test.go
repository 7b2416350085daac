package heads

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDiagnosisFindsWhatWouldMatch(t *testing.T) {
	const sent = `{"timestamp":"2026-08-31 06:56:30","head_id":"3f2b","n":1.50,"public_org_id":"Caf\u00e9 <&> a/b","event_type":"start_conversation"}`
	plain := strings.ReplaceAll(sent, `\u00e9`, "é")
	sum, err := hex.DecodeString(Sign([]byte(sent), testKeyA))
	require.NoError(t, err)
	hexKey, base64Key := hex.EncodeToString([]byte("secret bytes")), base64.StdEncoding.EncodeToString([]byte("secret bytes"))
	var tidy bytes.Buffer
	require.NoError(t, json.Indent(&tidy, []byte(plain), "", "  "))
	reordered := `{"event_type":"start_conversation","head_id":"3f2b","n":1.50,"public_org_id":"Café <&> a/b","timestamp":"2026-08-31 06:56:30"}`
	for _, row := range []struct {
		name            string
		body, signature string
		keys            []string
		want            []string
	}{
		{"nothing", sent, Sign([]byte(sent), testKeyA), []string{testKeyB, testKeyA}, []string{"matches as it is", "key 2 of 2"}},
		{"space around the signature", sent, " " + Sign([]byte(sent), testKeyA) + "\n", []string{testKeyA}, []string{"would match", "space or the quotes around the signature"}},
		{"prefix in capitals", sent, "SHA256=" + Sign([]byte(sent), testKeyA), []string{testKeyA}, []string{"strip what stands before the signature"}},
		{"prefix before base64", sent, "hmac-sha256: " + base64.StdEncoding.EncodeToString(sum), []string{testKeyA}, []string{"strip what stands before the signature"}},
		{"hex in base64", sent, base64.StdEncoding.EncodeToString([]byte(Sign([]byte(sent), testKeyA))), []string{testKeyA}, []string{"decode the signature from base64"}},
		{"line end in the key", sent, Sign([]byte(sent), testKeyA), []string{testKeyB, testKeyA + "\n"}, []string{"key 2 of 2", "trim the space around the key"}},
		{"quotes around the key", sent, Sign([]byte(sent), testKeyA), []string{`"` + testKeyA + `"`}, []string{"strip the quotes around the key"}},
		{"line end in the sender's key", sent, Sign([]byte(sent), testKeyA+"\n"), []string{testKeyA}, []string{"add a line end to the key"}},
		{"key in hex", sent, Sign([]byte(sent), "secret bytes"), []string{hexKey}, []string{"decode the key from hex"}},
		{"key in base64", sent, Sign([]byte(sent), "secret bytes"), []string{base64Key}, []string{"decode the key from base64"}},
		{"empty key", sent, Sign([]byte(sent), ""), []string{""}, []string{"signed with an empty key"}},
		{"line end after the body", sent + "\n", Sign([]byte(sent), testKeyA), []string{testKeyA}, []string{"remove the line end after the body"}},
		{"line end cut off", sent, Sign([]byte(sent+"\n"), testKeyA), []string{testKeyA}, []string{"add the line end after the body"}},
		{"space around the body", "  " + sent + " \n", Sign([]byte(sent), testKeyA), []string{testKeyA}, []string{"remove the space around the body"}},
		{"byte order mark", "\ufeff" + sent, Sign([]byte(sent), testKeyA), []string{testKeyA}, []string{"byte order mark"}},
		{"LF made CRLF", "{\r\n}", Sign([]byte("{\n}"), testKeyA), []string{testKeyA}, []string{"LF was turned into CRLF"}},
		{"CRLF made LF", "{\n}", Sign([]byte("{\r\n}"), testKeyA), []string{testKeyA}, []string{"CRLF was turned into LF"}},
		{"nothing was signed", sent, Sign(nil, testKeyA), []string{testKeyA}, []string{"over no bytes at all"}},
		{"gateway", base64.StdEncoding.EncodeToString([]byte(sent)), Sign([]byte(sent), testKeyA), []string{testKeyA}, []string{"decode the body from base64"}},
		{"text in text", quotePlain(sent), Sign([]byte(sent), testKeyA), []string{testKeyA}, []string{"the body is a JSON string"}},
		{"indented, was compact", tidy.String(), Sign([]byte(plain), testKeyA), []string{testKeyA}, []string{"without spaces", "escaped as here"}},
		{"compact, was indented by 2", plain, Sign(tidy.Bytes(), testKeyA), []string{testKeyA}, []string{"indented by 2"}},
		{"compact, was indented by 4", plain, Sign(indented([]byte(plain), "    "), testKeyA), []string{testKeyA}, []string{"indented by 4"}},
		{"compact, was indented by tabs", plain, Sign(indented([]byte(plain), "\t"), testKeyA), []string{testKeyA}, []string{"indented by tabs"}},
		{"compact, was spaced", plain, Sign([]byte(spacedSample), testKeyA), []string{testKeyA}, []string{"with a space after each comma and colon"}},
		{"unescaped, was ASCII", plain, Sign([]byte(sent), testKeyA), []string{testKeyA}, []string{"beyond ASCII escaped"}},
		{"escaped, was plain", sent, Sign([]byte(plain), testKeyA), []string{testKeyA}, []string{"without needless escapes"}},
		{"unescaped, was escaped for HTML", plain, Sign([]byte(strings.NewReplacer("<", `\u003c`, "&", `\u0026`, ">", `\u003e`).Replace(plain)), testKeyA), []string{testKeyA}, []string{"<, > and & escaped"}},
		{"unescaped, was with slashes", plain, Sign([]byte(strings.ReplaceAll(sent, "/", `\/`)), testKeyA), []string{testKeyA}, []string{"slashes"}},
		{"in another order", plain, Sign([]byte(reordered), testKeyA), []string{testKeyA}, []string{"sorted by name", "without needless escapes"}},
		{"three things at once", sent + "\n", "SHA256=" + Sign([]byte(sent), testKeyA), []string{" " + testKeyA},
			[]string{"strip what stands before the signature; trim the space around the key; remove the line end"}},

		{"another key", sent, Sign([]byte(sent), testKeyB), []string{testKeyA}, []string{"No key matches", "another registration"}},
		{"cut off", sent[:50], Sign([]byte(sent), testKeyA), []string{testKeyA}, []string{"No key matches", "not JSON"}},
		{"empty body", "", Sign([]byte(sent), testKeyA), []string{testKeyA}, []string{"The body is empty"}},
		{"no keys", sent, Sign([]byte(sent), testKeyA), nil, []string{"no shared key"}},
		{"only an empty key", sent, Sign([]byte(sent), testKeyA), []string{""}, []string{"no shared key"}},
		{"no signature", sent, " ", []string{testKeyA}, []string{"can't be read", "empty", SignatureHeader}},
		{"two signatures", sent, "abc,def", []string{testKeyA}, []string{"comma"}},
		{"SHA-1", sent, strings.Repeat("ab", 20), []string{testKeyA}, []string{"SHA-1"}},
		{"SHA-512", sent, strings.Repeat("ab", 64), []string{testKeyA}, []string{"SHA-512"}},
		{"something else", sent, "abc", []string{testKeyA}, []string{"3 characters"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			answer := DiagnoseSignature([]byte(row.body), row.signature, row.keys...)
			for _, want := range row.want {
				assert.Contains(t, answer, want)
			}
			for _, secret := range append([]string{testKeyA, testKeyB, hexKey, base64Key, Sign([]byte(row.body), testKeyA), Sign([]byte(sent), testKeyA)}, row.keys...) {
				if strings.TrimSpace(secret) != "" {
					assert.NotContains(t, answer, secret)
				}
			}
		})
	}
}

const spacedSample = `{"timestamp": "2026-08-31 06:56:30", "head_id": "3f2b", "n": 1.50, "public_org_id": "Café <&> a/b", "event_type": "start_conversation"}`

func TestDiagnosisTakesAnything(t *testing.T) {
	for _, body := range []string{"", "{", `"`, `"\`, `{"a":"\`, `{}`, `[]`, `[[],{}]`, `"\ud800"`, "\xff", `{"a":{"b":[1,2,{"c":null}]}}`, `"🙂"`} {
		assert.NotEmpty(t, DiagnoseSignature([]byte(body), Sign([]byte("other"), testKeyA), testKeyA, ""))
	}
}
