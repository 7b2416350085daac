package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFileOfIDsMayComeFromASpreadsheet(t *testing.T) {
	const other = "1b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01"
	for name, row := range map[string]struct{ text, label string }{
		"header in capitals":  {"HEAD_ID,Label\n" + someID + ",Lobby", "Lobby"},
		"header of one word":  {"Id\n" + someID + ",Lobby", "Lobby"},
		"mixed header":        {"Head_ID;x\n" + someID + ",Lobby", "Lobby"},
		"quoted header":       {"\"Head_ID\",\"Label\"\r\n\"" + someID + "\",\"Lobby\"\r\n", "Lobby"},
		"quoted label":        {someID + ",\"Lobby, east\"", "Lobby, east"},
		"quotes in it":        {someID + ", \"The \"\"Lobby\"\"\"", `The "Lobby"`},
		"more columns":        {someID + ",\"Lobby, east\",7,x", "Lobby, east"},
		"not quoted":          {someID + ",Lobby, east", "Lobby, east"},
		"a quote in a label":  {someID + ",27\" screen", `27" screen`},
		"quoted id, no label": {"\"" + someID + "\"", ""},
	} {
		targets, err := parseIDs("ids.csv", []byte(row.text))
		require.NoError(t, err, name)
		assert.Equal(t, []target{{someID, row.label}}, targets, name)
	}
	for name, text := range map[string]string{
		"open quote": someID + ",\"Lobby\n" + other, "text after it": someID + ",\"Lobby\" east", "a header further down": someID + "\nID\n",
	} {
		_, err := parseIDs("ids.csv", []byte(text))
		require.Error(t, err, name)
		assert.Contains(t, err.Error(), "ids.csv:", name)
	}
}

func TestIdsComeFromAFileOrStdin(t *testing.T) {
	c := demo(t)
	file := "\xef\xbb\xbfhead_id,name\r\n\r\n# a comment\r\n" + c.ids[0] + ",Reception\r\n" + strings.ToUpper(c.ids[0]) + "\r\n " + c.ids[1] + " \r\n"
	r := c.runWith(file, "export", "-f", "-")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Contains(t, r.stdout, "label: Reception")
	assert.Equal(t, 2, strings.Count(r.stdout, "  - id: "))
	r = c.runWith(file+"li-1\nid\n", "convert", "-f", "-", "--yes", "--debug")
	assert.Equal(t, 2, r.code)
	assert.Equal(t, []string{
		`error: stdin:7: "li-1" is not the id of a head; give the UUID in the head's id field`,
		`error: stdin:8: "id" is not the id of a head; give the UUID in the head's id field`,
	}, lines(r.stderr), "all together, and nothing was sent")
	assert.Contains(t, c.runWith(file, "convert", "-f", "-", "--dry-run").stdout, "2 pending")
}
