package main

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/redact"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
)

var formats = []string{"table", "json", "yaml"}

// outputFlag adds -o to a command.
func outputFlag(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVarP(format, "output", "o", "table", "output `FORMAT`: table, json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	checkBefore(cmd, func() error { return oneOf("the output format", *format, formats) })
}

// print writes a value as JSON or YAML, or calls table for the format of that
// name.
func (a *app) print(format string, v any, table func()) error {
	if format == "table" {
		table()
		return nil
	}
	doc, err := rawjson.Encode(v)
	if err != nil {
		return err
	}
	if format == "json" {
		var indented bytes.Buffer
		if err := json.Indent(&indented, doc, "", "  "); err != nil {
			return err
		}
		doc = append(show.JSON(indented.Bytes()), '\n')
	} else {
		doc = yamltext.Write(doc)
	}
	_, err = a.stdout.Write(doc)
	return err
}

func showSecretsFlag(cmd *cobra.Command, secrets *bool) {
	cmd.Flags().BoolVar(secrets, "show-secrets", false, "show keys and tokens instead of [redacted]")
}

// headDocument returns the JSON of a head with its secrets, which package json does
// not show.
func headDocument(h *heads.Head) (json.RawMessage, error) {
	doc, err := rawjson.Encode(h)
	return redact.Restore(doc, h.Raw.Bytes()), err
}

// shownHead returns a head as it is shown, and its JSON.
func shownHead(h *heads.Head, secrets bool) (*heads.Head, json.RawMessage, error) {
	doc, err := headDocument(h)
	if secrets || err != nil {
		return h, doc, err
	}
	doc, shown := redact.Body(doc), new(heads.Head)
	return shown, doc, json.Unmarshal(doc, shown)
}

// printTyped writes an object with its type as one line of JSON.
func (a *app) printTyped(kind string, v any) {
	document, err := json.Marshal(v)
	if err == nil {
		a.say(`{"type":"%s",%s`, kind, strings.TrimPrefix(string(show.JSON(document)), "{"))
	}
}

// printJSON writes a value as one line.
func (a *app) printJSON(value any) {
	line, err := json.Marshal(value)
	if err == nil {
		a.say("%s", show.JSON(line))
	}
}
