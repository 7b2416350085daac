package panics_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/internal/panics"
)

func TestTryReturnsTheError(t *testing.T) {
	want := errors.New("broken")
	assert.Equal(t, want, panics.Try(func() error { return want }))
	assert.NoError(t, panics.Try(func() error { return nil }))
}

func TestTryReturnsAPanicWithItsStack(t *testing.T) {
	for name, value := range map[string]any{"text": "broken", "error": http.ErrAbortHandler} {
		err := panics.Try(func() error { panic(value) })
		var p *panics.Error
		require.ErrorAs(t, err, &p, name)
		assert.Equal(t, value, p.Value, name)
		assert.Contains(t, string(p.Stack), "panics_test.go", name)
		assert.ErrorContains(t, err, "heads: panic: ", name)
	}
	assert.Error(t, panics.Try(func() error { panic(nil) })) //nolint:govet // the value is the point
}
