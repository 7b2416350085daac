package heads

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A name below localhost is resolved like any other name and can be any host.
func TestPlainHTTPIsForLoopbackAlone(t *testing.T) {
	for name, check := range map[string]func(base string) error{
		"New": func(base string) error {
			_, err := New(base, pathToken)
			return err
		},
		"WithAccessBases": func(base string) error {
			_, err := New(memoryURL, pathToken, WithAccessBases(base, ""))
			return err
		},
		"AccessURL.WithBase": func(base string) error {
			_, err := AccessURL{}.WithBase(base)
			return err
		},
		"webhook": func(base string) error {
			return WebhookSpec{HeadID: testHead, URL: base, Events: []EventType{EventEndConversation}}.validate("test")
		},
		"tool": func(base string) error {
			return Tool{Name: "find", Description: "Finds.", URL: base}.Validate()
		},
		"NewToolHandler": func(base string) error {
			_, err := NewToolHandler(base)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, base := range []string{"http://localhost:1", "http://LOCALHOST", "http://127.0.0.1", "http://[::1]:80", "https://x.localhost"} {
				require.NoError(t, check(base), base)
			}
			for _, base := range []string{"http://x.localhost", "http://localhost.example.com", "http://0.0.0.0", "http://10.0.0.1"} {
				assert.ErrorIs(t, check(base), ErrInvalid, base)
			}
		})
	}
}
