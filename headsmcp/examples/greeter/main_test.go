package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHeadCallsAServerOfTheSDKOverStdio(t *testing.T) {
	server := filepath.Join(t.TempDir(), "hello")
	built, err := exec.Command("go", "build", "-o", server, "github.com/modelcontextprotocol/go-sdk/examples/server/hello").CombinedOutput()
	require.NoError(t, err, string(built))
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, []string{server}))
	assert.Equal(t, `registered greet: say hi.
  name (string): the person to greet.
greet map[name:Ada]: Hi Ada
greet map[]: name is missing; ask the user for it
`, out.String())
}
