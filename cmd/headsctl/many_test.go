package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRateLimitsRequests(t *testing.T) {
	c := demo(t)
	r := c.run("doctor", c.ids[0], c.ids[1], "--rate", "20", "--debug")
	assert.Equal(t, 0, r.code)
	assert.Contains(t, r.stderr, "waited ")
}
