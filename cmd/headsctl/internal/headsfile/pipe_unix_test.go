//go:build unix

package headsfile

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPipeIsNotReadInsteadOfAText(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	text, err := readText(dir, "pipe", maxFileText)
	require.ErrorContains(t, err, "pipe is not a regular file")
	require.Empty(t, text)
}
