package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain is also the main function of the receivers that the example starts.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-receive") {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestNothingIsLostOrDoubled(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(context.Background(), &out, []string{"-sessions", "100"}))
	assert.Contains(t, out.String(), "killed in the middle")
	assert.Contains(t, out.String(), "200 acknowledged, 200 visits, 0 lost, 0 doubled")
}
