package headstest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// signatureHeader is defined here and not taken from the client, so a test notices
// if the two differ.
const signatureHeader = "X-Signature-256"

// SignatureEncoding is the encoding of the 32 bytes of a signature in their header.
type SignatureEncoding int

// Encodings of a signature.
const (
	SignatureHex    SignatureEncoding = iota + 1 // lower-case hex, 64 characters
	SignatureBase64                              // standard base64 with padding, 44 characters
)

// sign returns the HMAC-SHA256 of body under a webhook's shared key.
func sign(body []byte, sharedKey string, enc SignatureEncoding) string {
	mac := hmac.New(sha256.New, []byte(sharedKey))
	mac.Write(body)
	sum := mac.Sum(nil)
	if enc == SignatureBase64 {
		return base64.StdEncoding.EncodeToString(sum)
	}
	return hex.EncodeToString(sum)
}
