package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	heads "github.com/headsapi/heads-go"
)

func TestDoctorTellsWhatIsWrong(t *testing.T) {
	c := demo(t)
	r := c.ends(1, "doctor", "-f", "ids.csv")
	assert.Empty(t, r.stderr)
	assert.Contains(t, r.stdout, c.ids[0]+" Lobby (legacy): nothing found\n")
	assert.Contains(t, r.stdout, "error   tool_invalid tool order_status\n")
	assert.Contains(t, r.stdout, "error   inactive isActive\n")
	assert.Len(t, parse[[]heads.Examination](t, c.run("doctor", c.ids[23], c.ids[0], "-o", "json").stdout), 2)
	assert.Contains(t, c.ok("doctor", c.ids[0], "-o", "json"), `"findings": []`, "never null")
	c.ok("doctor", c.ids[23]) // warnings alone
}
