package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAFullDiskIsAFailure(t *testing.T) {
	c := demo(t)
	for _, args := range [][]string{{"version"}, {"plan", "-f", "heads.yaml", "--exit-code"}} { // 1 goes before 3
		cmd := c.command(t.Context(), args...)
		cmd.Stdout = openFull(t)
		assert.Equal(t, 1, exitCode(t, cmd.Run()), args)
	}
}
