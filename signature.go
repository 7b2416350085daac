package heads

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"slices"
	"strings"
	"sync"

	"github.com/headsapi/heads-go/internal/diagnose"
)

// SignatureHeader is the request header that carries the signature of a
// webhook delivery.
const SignatureHeader = "X-Signature-256"

// The ways in which a signature can be refused. VerifySignature returns them
// unwrapped.
var (
	// ErrSignatureMissing reports that there is no signature at all.
	ErrSignatureMissing = errors.New("heads: the signature is missing: take it from the header " + SignatureHeader)

	// ErrSignatureMalformed reports a text that can't be a signature.
	ErrSignatureMalformed = errors.New("heads: the signature is malformed: expected 64 hex digits or the base64 of 32 bytes, once")

	// ErrSignatureMismatch reports that none of the keys made this signature over these bytes.
	ErrSignatureMismatch = errors.New("heads: the signature does not match the body with any of the shared keys")

	// ErrNoSharedKey reports that there was no key to verify with. Empty keys are ignored.
	ErrNoSharedKey = errors.New("heads: there is no shared key to verify with: an empty key verifies nothing")
)

// Sign returns the signature that the service sends for body: HMAC-SHA256 with
// the webhook's shared key, as 64 lower-case hex digits.
//
// Receivers need it in tests alone. To verify, use VerifySignature: the time that
// a comparison with == takes shows an attacker how many characters were right.
func Sign(body []byte, sharedKey string) string {
	sum := hmacSHA256(body, sharedKey)
	return hex.EncodeToString(sum[:])
}

// VerifySignature returns nil if signature was made over exactly these bytes with
// one of the shared keys. Pass several keys while a key is being replaced.
//
// Body must be the bytes of the request as they arrived: decoding and encoding
// them again changes them. The signature is the value of SignatureHeader: 64
// hex digits in either case, or base64 in either alphabet, padded or not, each
// with an optional "sha256=" before it. The comparison takes the same time
// wherever the first difference is.
//
// Otherwise it returns ErrSignatureMissing, ErrSignatureMalformed, ErrNoSharedKey
// or ErrSignatureMismatch.
func VerifySignature(body []byte, signature string, sharedKeys ...string) error {
	sent, err := decodeSignature(signature)
	if err != nil {
		return err
	}
	_, err = matchingKey(body, sent, sharedKeys)
	return err
}

// DiagnoseSignature describes in words why a signature does not match, for a
// person who has a recorded delivery. With each of the keys it tries what
// usually goes wrong: other spellings of the signature, keys with space or
// quotes around them or in an encoding, bodies with a line end more or less,
// JSON that was decoded and encoded again. Keys are named by their position; the
// result shows neither a key nor a signature that was computed here.
//
// Use it offline, to find out what to repair. EventHandler never calls it, and no
// receiver should: a body that the signature does not match is not to be trusted.
func DiagnoseSignature(body []byte, signature string, keys ...string) string {
	scheme := diagnose.Scheme{Header: SignatureHeader, Decode: decodeSignature, Sum: hmacSHA256}
	return scheme.Explain(body, signature, keys)
}

// matchingKey returns the place in sharedKeys of the key that made the
// signature.
func matchingKey(body []byte, sent [sha256.Size]byte, sharedKeys []string) (int, error) {
	err := ErrNoSharedKey
	for i, key := range sharedKeys {
		if key == "" {
			continue
		}
		sum := hmacSHA256(body, key)
		if subtle.ConstantTimeCompare(sum[:], sent[:]) == 1 {
			return i, nil
		}
		err = ErrSignatureMismatch
	}
	return 0, err
}

// Strict decoders refuse stray bits at the end, so that no signature has two
// spellings in one alphabet.
var (
	strictStdBase64 = base64.RawStdEncoding.Strict()
	strictURLBase64 = base64.RawURLEncoding.Strict()
)

const (
	hexLen    = 2 * sha256.Size
	base64Len = 44
)

func decodeSignature(text string) (sum [sha256.Size]byte, err error) {
	if text == "" {
		return sum, ErrSignatureMissing
	}
	text = strings.TrimPrefix(text, "sha256=")
	var buf [hexLen]byte
	src := buf[:copy(buf[:], text)]
	var n int
	switch len(text) {
	case hexLen:
		n, err = hex.Decode(sum[:], src)
	case base64Len - 1:
		n, err = decodeBase64(sum[:], src)
	case base64Len:
		if src[len(src)-1] == '=' {
			n, err = decodeBase64(sum[:], src[:len(src)-1])
		}
	}
	// The base64 decoder skips line breaks, and the result is then too short.
	if err != nil || n != sha256.Size {
		return sum, ErrSignatureMalformed
	}
	return sum, nil
}

func decodeBase64(dst, src []byte) (int, error) {
	for _, c := range src {
		if c == '-' || c == '_' {
			return strictURLBase64.Decode(dst, src)
		}
	}
	return strictStdBase64.Decode(dst, src)
}

// mac computes HMAC-SHA256 (RFC 2104) on memory that is used again. Package
// crypto/hmac can't be given another key, and a pool of its states would have
// to keep every key that was ever used.
type mac struct {
	sha   hash.Hash
	key   [sha256.BlockSize]byte
	block [sha256.BlockSize]byte
	sum   [sha256.Size]byte
}

var macs = sync.Pool{New: func() any { return &mac{sha: sha256.New()} }}

func hmacSHA256(message []byte, key string) [sha256.Size]byte {
	m := macs.Get().(*mac)
	m.setKey(key)
	m.round(0x36, message)
	m.round(0x5c, m.sum[:])
	sum := m.sum
	m.forget()
	macs.Put(m)
	return sum
}

func (m *mac) setKey(key string) {
	if len(key) > len(m.key) {
		short := sha256.Sum256([]byte(key))
		copy(m.key[:], short[:])
		return
	}
	copy(m.key[:], key)
}

// round sets m.sum to the SHA-256 of the padded key and the message.
func (m *mac) round(pad byte, message []byte) {
	for i, b := range m.key {
		m.block[i] = b ^ pad
	}
	m.sha.Reset()
	m.sha.Write(m.block[:])
	m.sha.Write(message)
	m.sha.Sum(m.sum[:0])
}

// forget clears the key and the result before the mac returns to the pool.
func (m *mac) forget() {
	m.sha.Reset()
	clear(m.key[:])
	clear(m.block[:])
	clear(m.sum[:])
}

// usableKeys returns a copy without empty keys, to which nothing can be
// appended in place.
func usableKeys(keys []string) []string {
	return slices.Clip(slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return key == "" }))
}
