package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/headsapi/heads-go/internal/goldens"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The flags, without the texts that explain them.
func TestGoldenHelp(t *testing.T) {
	var help bytes.Buffer
	require.Error(t, startAndStop(t, &help, io.Discard, "-h"))
	defaults := regexp.MustCompile(`\(default.*\)`)
	var b strings.Builder
	for _, flag := range strings.Split(help.String(), "\n  -")[1:] {
		name, _, _ := strings.Cut(strings.Split(flag, "\n")[0], "\t")
		fmt.Fprintln(&b, strings.TrimSpace("-"+name+" "+defaults.FindString(flag)))
	}
	goldens.Compare(t, "help/heads-emulator.txt", b.String())
}

// The keys of the announcement, with their types.
func TestGoldenJSON(t *testing.T) {
	const head = "0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01"
	seed := writeFile(t, `{"heads":[{"id":"`+head+`"}],"visuals":[{"id":"v","mode":"default"}],
		"registrations":[{"headId":"`+head+`","webhookUrl":"https://a.example.test"}]}`)
	text, err := json.Marshal(start(t, "-seed-file", seed).announcement)
	require.NoError(t, err)
	var keys map[string]any
	require.NoError(t, json.Unmarshal(text, &keys))
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(&b, "%s: %T\n", key, keys[key])
		if list, ok := keys[key].([]any); ok && assert.NotEmpty(t, list) {
			fmt.Fprintf(&b, "%s[]: %T\n", key, list[0])
		}
	}
	goldens.Compare(t, "json/heads-emulator.txt", b.String())
}

func TestGoldenExits(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, taken.Close()) })
	var b strings.Builder
	for _, row := range [][]string{ // what happens, and the arguments
		{"stopped by a signal", "-addr", "127.0.0.1:0"},
		{"help", "-h"},
		{"version", "-version"},
		{"wrong usage", "-nothing"},
		{"a faulty seed file", "-seed-file", "nowhere.json"},
		{"an address that is taken", "-addr", taken.Addr().String()},
	} {
		var out bytes.Buffer
		code := exitCode(startAndStop(t, &out, io.Discard, row[1:]...), io.Discard)
		assert.True(t, code == 0 || out.Len() == 0, "%s: what did not start announces nothing", row[0])
		fmt.Fprintf(&b, "%s: %d\n", row[0], code)
	}
	goldens.Compare(t, "exits.txt", b.String())
}
