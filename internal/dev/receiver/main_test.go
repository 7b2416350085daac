package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReceiverWritesOnlyIntoAFolderThatIsNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("received", 0o700))
	for _, dir := range []string{"", "received"} {
		rec := httptest.NewRecorder()
		req := httptest.NewRequest("POST", "/", strings.NewReader("body"))
		req.Header.Set("x-signature-256", "signature")
		(&receiver{dir: dir}).ServeHTTP(rec, req)
		assert.Equal(t, []any{200, `{"message":"received"}`}, []any{rec.Code, rec.Body.String()})
		files, err := filepath.Glob("*")
		require.NoError(t, err)
		assert.Equal(t, []string{"received"}, files)
		kept, err := filepath.Glob("received/*")
		require.NoError(t, err)
		if dir == "" {
			assert.Empty(t, kept)
		} else {
			assert.Equal(t, []string{"received/1.body", "received/1.signature"}, kept)
		}
	}
}
