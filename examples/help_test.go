package examples

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHelpEndsWithStatus0(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./...").CombinedOutput()
	require.NoError(t, err, string(out))
	programs, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	assert.NotEmpty(t, programs)
	for _, program := range programs {
		t.Run(filepath.Base(program), func(t *testing.T) {
			out, err := exec.Command(program, "-h").CombinedOutput()
			assert.NoError(t, err)
			assert.Contains(t, string(out), "Usage")
			assert.NotContains(t, string(out), "help requested")
		})
	}
}
