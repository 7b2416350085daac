package heads

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	testHeadA = "3f2b8c1e-5d4a-4e6f-9a7b-0c1d2e3f4a5b"
	testHeadB = "8d0e6c52-1f3b-4a7c-8e9d-2b4c6d8e0f1a"
	testKeyA  = "example-key-of-head-a"
	testKeyB  = "example-key-of-head-b"
)

func TestSignFollowsRFC4231(t *testing.T) {
	data := Must(os.ReadFile("testdata/signatures/rfc4231.json"))(t)
	var vectors []struct {
		Case           int
		Key, Data, MAC string
	}
	require.NoError(t, json.Unmarshal(data, &vectors))
	require.Len(t, vectors, 7)
	for _, v := range vectors {
		key := Must(hex.DecodeString(v.Key))(t)
		body := Must(hex.DecodeString(v.Data))(t)
		require.NotEmpty(t, v.MAC)
		signature := Sign(body, string(key))
		assert.Equal(t, v.MAC, signature[:len(v.MAC)], "case %d", v.Case)
		assert.NoError(t, VerifySignature(body, signature, string(key)), "case %d", v.Case)
	}
}

func TestSignaturesOfOtherProgramsVerify(t *testing.T) {
	for _, program := range []string{"openssl", "python", "node"} {
		t.Run(program, func(t *testing.T) {
			read := func(name string) []byte {
				data := Must(os.ReadFile(filepath.Join("testdata/signatures", name)))(t)
				return data
			}
			lines := strings.Split(strings.TrimSpace(string(read(program+".txt"))), "\n")
			require.Len(t, lines, 16)
			for _, line := range lines {
				f := strings.Fields(line)
				require.Len(t, f, 4, line)
				body, key := read(f[0]), string(read(f[1]))
				assert.Equal(t, f[2], Sign(body, key), line)
				assert.NoError(t, VerifySignature(body, f[2], key), line)
				assert.NoError(t, VerifySignature(body, f[3], key), line)
			}
		})
	}
}

// An HMAC treats keys longer than a block differently.
func TestSignAgreesWithCryptoHMAC(t *testing.T) {
	body := []byte(strings.Repeat("event ", 50))
	for length := range 200 {
		key := strings.Repeat("\x5c6k", 70)[:length]
		m := hmac.New(sha256.New, []byte(key))
		m.Write(body[:length])
		assert.Equal(t, hex.EncodeToString(m.Sum(nil)), Sign(body[:length], key), "key of %d bytes", length)
	}
}

func TestVerifyAcceptsEveryEncoding(t *testing.T) {
	// The sum of this body has both characters in which the two base64 alphabets
	// differ.
	body := []byte(`{"n":0}`)
	hexText := Sign(body, testKeyA)
	sum := Must(hex.DecodeString(hexText))(t)
	std := base64.StdEncoding.EncodeToString(sum)
	require.Contains(t, std, "+")
	require.Contains(t, std, "/")
	for name, signature := range map[string]string{
		"hex":                      hexText,
		"upper-case hex":           strings.ToUpper(hexText),
		"mixed hex":                strings.ToUpper(hexText[:32]) + hexText[32:],
		"base64, padded":           std,
		"base64, bare":             base64.RawStdEncoding.EncodeToString(sum),
		"URL-safe base64, padded":  base64.URLEncoding.EncodeToString(sum),
		"URL-safe base64, bare":    base64.RawURLEncoding.EncodeToString(sum),
		"prefixed hex":             "sha256=" + hexText,
		"prefixed base64":          "sha256=" + std,
		"prefixed URL-safe base64": "sha256=" + base64.RawURLEncoding.EncodeToString(sum),
	} {
		t.Run(name, func(t *testing.T) {
			assert.NoError(t, VerifySignature(body, signature, testKeyA))
			assert.ErrorIs(t, VerifySignature(body, signature, testKeyB), ErrSignatureMismatch)
			assert.ErrorIs(t, VerifySignature(append(body, ' '), signature, testKeyA), ErrSignatureMismatch)
		})
	}
}

func TestVerifyRefusesMalformedSignatures(t *testing.T) {
	body := []byte("body")
	good := Sign(body, testKeyA)
	sum := Must(hex.DecodeString(good))(t)
	b64 := base64.StdEncoding.EncodeToString(sum)
	for name, signature := range map[string]string{
		"one digit short":            good[:63],
		"one digit more":             good + "0",
		"not hex":                    "g" + good[1:],
		"space before":               " " + good,
		"space after":                good + " ",
		"line end after":             good + "\n",
		"another algorithm":          "sha1=" + good,
		"prefix in capitals":         "SHA256=" + good,
		"prefix twice":               "sha256=sha256=" + good,
		"prefix alone":               "sha256=",
		"two signatures":             good + "," + good,
		"base64 of 31 bytes":         base64.StdEncoding.EncodeToString(sum[:31]),
		"base64 of 33 bytes":         base64.StdEncoding.EncodeToString(append(bytes.Clone(sum), 0)),
		"both base64 alphabets":      "-/" + b64[2:],
		"line end within base64":     b64[:20] + "\n" + b64[21:],
		"line end at base64's end":   b64[:43] + "\n",
		"padding within base64":      b64[:20] + "=" + b64[21:],
		"padding twice":              b64[:42] + "==",
		"stray bits after base64":    b64[:42] + nextBase64(b64[42]) + "=",
		"a body's length":            strings.Repeat("a", 70000),
		"64 bytes that are not text": strings.Repeat("\x00", 64),
		"a placeholder":              "<SIGNATURE>",
	} {
		t.Run(name, func(t *testing.T) {
			assert.ErrorIs(t, VerifySignature(body, signature, testKeyA), ErrSignatureMalformed)
		})
	}
}

// nextBase64 returns the next character of the alphabet, which differs in the last
// bit only.
func nextBase64(c byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	return string(alphabet[strings.IndexByte(alphabet, c)+1])
}

func TestVerifyReturnsWhatIsMissing(t *testing.T) {
	body := []byte("body")
	assert.ErrorIs(t, VerifySignature(body, "", testKeyA), ErrSignatureMissing)
	assert.ErrorIs(t, VerifySignature(body, Sign(body, testKeyA)), ErrNoSharedKey)
	assert.ErrorIs(t, VerifySignature(body, Sign(body, ""), ""), ErrNoSharedKey, "an empty key verifies nothing")
	assert.ErrorIs(t, VerifySignature(body, Sign(body, ""), "", ""), ErrNoSharedKey)
	assert.ErrorIs(t, VerifySignature(body, Sign(body, ""), "", testKeyA), ErrSignatureMismatch)
	assert.NoError(t, VerifySignature(body, Sign(body, testKeyA), "", testKeyA))
}

func TestVerifyTriesEveryKey(t *testing.T) {
	body := []byte("body")
	for _, key := range []string{testKeyA, testKeyB, "third"} {
		assert.NoError(t, VerifySignature(body, Sign(body, key), testKeyA, testKeyB, "third"))
	}
	assert.ErrorIs(t, VerifySignature(body, Sign(body, "fourth"), testKeyA, testKeyB, "third"), ErrSignatureMismatch)
}

func TestVerifyRefusesEveryFlippedBit(t *testing.T) {
	body := []byte(eventBody(testHeadA, "session", "start_conversation", "2026-08-31 06:56:30"))
	signature := Sign(body, testKeyA)
	sum := Must(hex.DecodeString(signature))(t)
	require.NoError(t, VerifySignature(body, signature, testKeyA))

	eachFlip := func(data []byte, check func(flipped []byte, bit int)) {
		for bit := range 8 * len(data) {
			flipped := bytes.Clone(data)
			flipped[bit/8] ^= 1 << (bit % 8)
			check(flipped, bit)
		}
	}
	eachFlip(body, func(flipped []byte, bit int) {
		require.ErrorIs(t, VerifySignature(flipped, signature, testKeyA), ErrSignatureMismatch, "bit %d of the body", bit)
	})
	eachFlip([]byte(testKeyA), func(flipped []byte, bit int) {
		require.ErrorIs(t, VerifySignature(body, signature, string(flipped)), ErrSignatureMismatch, "bit %d of the key", bit)
	})
	eachFlip(sum, func(flipped []byte, bit int) {
		require.ErrorIs(t, VerifySignature(body, hex.EncodeToString(flipped), testKeyA), ErrSignatureMismatch, "bit %d of the signature", bit)
		require.ErrorIs(t, VerifySignature(body, base64.StdEncoding.EncodeToString(flipped), testKeyA), ErrSignatureMismatch, "bit %d of the signature", bit)
	})
	// A flipped bit may change the case of a hex digit, which is the same signature.
	// Nothing else may verify.
	for _, text := range []string{signature, "sha256=" + signature, base64.StdEncoding.EncodeToString(sum)} {
		eachFlip([]byte(text), func(flipped []byte, bit int) {
			if text != base64.StdEncoding.EncodeToString(sum) && strings.EqualFold(string(flipped), text) && string(flipped[:1]) == text[:1] {
				return
			}
			require.Error(t, VerifySignature(body, string(flipped), testKeyA), "bit %d of %q", bit, text)
		})
	}
}

// Computations reuse memory. Keys of other lengths and other goroutines must not
// disturb each other.
func TestSignaturesDoNotDisturbEachOther(t *testing.T) {
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				key := strings.Repeat("k", 1+(g*31+i)%100)
				body := bytes.Repeat([]byte{byte(g)}, i)
				m := hmac.New(sha256.New, []byte(key))
				m.Write(body)
				if got, want := Sign(body, key), hex.EncodeToString(m.Sum(nil)); got != want {
					t.Errorf("Sign with a key of %d bytes: got %s, want %s", len(key), got, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestSigningLeavesNothingInMemory(t *testing.T) {
	fresh := func() *mac { return &mac{sha: sha256.New()} }
	m := fresh()
	m.setKey(testKeyA)
	m.round(0x36, []byte("body"))
	m.forget()
	assert.Equal(t, fresh().sha.Sum(nil), m.sha.Sum(nil), "the state of the hash stands for the key")
	assert.Zero(t, m.key)
	assert.Zero(t, m.block)
	assert.Zero(t, m.sum)
}

func TestSignatureErrorsShowNoKey(t *testing.T) {
	body := []byte("body")
	for _, err := range []error{
		VerifySignature(body, "", testKeyA),
		VerifySignature(body, "x", testKeyA),
		VerifySignature(body, Sign(body, testKeyB), testKeyA),
	} {
		require.Error(t, err)
		assert.NotContains(t, err.Error(), testKeyA)
		assert.NotContains(t, err.Error(), Sign(body, testKeyA))
	}
}
