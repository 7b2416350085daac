package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFileOfIDsMayComeFromASpreadsheet(t *testing.T) {
	for _, row := range [][2]string{ // a file, and the label
		{"HEAD_ID,Label\n" + someID + ",Lobby", "Lobby"}, {"Id\n" + someID + ",Lobby", "Lobby"}, {"Head_ID;x\n" + someID + ",Lobby", "Lobby"},
		{"\"Head_ID\",\"Label\"\r\n\"" + someID + "\",\"Lobby\"\r\n", "Lobby"}, {someID + ",\"Lobby, east\"", "Lobby, east"},
		{someID + ", \"The \"\"Lobby\"\"\"", `The "Lobby"`}, {someID + ",\"Lobby, east\",7,x", "Lobby, east"},
		{someID + ",Lobby, east", "Lobby, east"}, {someID + ",27\" screen", `27" screen`}, {"\"" + someID + "\"", ""},
	} {
		assert.Equal(t, []target{{someID, row[1]}}, need(parseIDs("ids.csv", []byte(row[0])))(t), row)
	}
	for _, text := range []string{someID + ",\"Lobby\n1b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01", someID + ",\"Lobby\" east", someID + "\nID\n"} {
		_, err := parseIDs("ids.csv", []byte(text))
		require.ErrorContains(t, err, "ids.csv:", text)
	}
}

func TestIdsComeFromAFileOrStdin(t *testing.T) {
	c := demo(t)
	file := "\xef\xbb\xbfhead_id,name\r\n\r\n# a comment\r\n" + c.ids[0] + ",Reception\r\n" + strings.ToUpper(c.ids[0]) + "\r\n " + c.ids[1] + " \r\n"
	r := c.runWith(file, "export", "-f", "-")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Contains(t, r.stdout, "label: Reception")
	assert.Equal(t, 2, strings.Count(r.stdout, "  - id: "))
	assert.Equal(t, result{2, "", `error: stdin:7: "li-1" is not the id of a head; give the UUID in the head's id field
error: stdin:8: "id" is not the id of a head; give the UUID in the head's id field
`}, c.runWith(file+"li-1\nid\n", "convert", "-f", "-", "--yes", "--debug"), "all together, and nothing was sent")
	assert.Contains(t, c.runWith(file, "convert", "-f", "-", "--dry-run").stdout, "2 pending")
}
