package main

import (
	"context"
	"regexp"
	"strings"

	heads "github.com/headsapi/heads-go"
)

// inCommands puts what to type in the place of methods and options, which the
// texts of the library name.
var inCommands = strings.NewReplacer(
	// Findings.
	"Heads.SetVideoStreaming", "headsctl call PUT /head/ID/video-streaming --query videoStreaming=true",
	"use Client.AccessURL", "put its path below the base URL of its mode",
	"with Webhooks.Ensure", "with headsctl webhooks ensure ID --url URL --event EVENT",
	"Webhooks.SetDelivery", "headsctl delivery on ID",
	", or call Webhooks.Ensure with RemoveDuplicates", " with headsctl webhooks delete",
	"ConversationSettings.PutTool, or remove it", "headsctl tools put ID -f TOOL.yaml, or remove it with headsctl tools remove ID NAME",
	"Set operationMode to oc, or remove the tools", "Set the mode with headsctl set ID operationMode=oc, or remove the tools",
	"Convert with AllowUnknownMode, which lets the service decide", "Look at the head where it was created",

	// Errors of heads.
	"AllowUnknownMode goes on and lets the service decide", "look at the head where it was created",
	"SetVideoStreaming lets the service decide", "look at the head where it was created",
	"a Voice of one that does, or AllowAnyProvider to let the service decide", "a voice of one that does",
	"give WithAccessURLs its base (or set HEADS_STREAM_URL and HEADS_CHAT_URL)", "set HEADS_STREAM_URL and HEADS_CHAT_URL",
	"use WithAccessURLs (or set HEADS_STREAM_URL and HEADS_CHAT_URL)", "set HEADS_STREAM_URL and HEADS_CHAT_URL",
	"give the publicUrl of a head as Heads.Get reads it", "look at the head where it was created",
	"(HeadUpdate.OperationMode)", "with headsctl set ID operationMode=oc",

	// Errors of settings and arguments.
	"use https, or WithInsecureHTTP", "use https",
	"give the access token, or WithTokenSource", "give the access token",
	"give both, use Voice(provider, voice)", "give both",
	"use url.PathEscape on each segment", "write a space as %20",
	"use Query", "use --query",
	"specs[", "heads[",
)

// method is the name that the library puts before its errors, which says
// nothing to someone in front of a terminal.
var method = regexp.MustCompile(`^(heads: |fleet: )?((fleet\.)?[A-Z][A-Za-z]*(\.[A-Z][A-Za-z]*)?: )?`)

func plainError(err error) string {
	text := oneLine(err.Error())
	return inCommands.Replace(text[len(method.FindString(text)):])
}

// placeID matches where the id of the head belongs in a command.
var placeID = regexp.MustCompile(`(headsctl [a-zA-Z/ ]*\b)ID\b`)

// examine returns what Heads.Examine finds, with remedies to type.
func examine(ctx context.Context, c *heads.Client, id string) (*heads.Examination, error) {
	e, err := c.Heads.Examine(ctx, id)
	if err != nil {
		return nil, err
	}
	for i := range e.Findings {
		e.Findings[i].Remedy = placeID.ReplaceAllString(inCommands.Replace(e.Findings[i].Remedy), "${1}"+id)
	}
	return e, nil
}
