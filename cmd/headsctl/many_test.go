package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRateLimitsRequests(t *testing.T) {
	c := demo(t)
	assert.Contains(t, c.ends(0, "doctor", c.ids[0], c.ids[1], "--rate", "20", "--debug").stderr, "waited ")
}
