package main

import (
	"context"
	"regexp"
	"strings"
	"unicode"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
)

// ownFault is the remedy for what no argument can cause.
const ownFault = "this is a fault of headsctl: report it with the command that you have typed"

// remedies maps the Use of a remedy, a Go function of the library, to what to type instead. ID
// stands for the id of the head.
var remedies = map[string]string{
	"Client.AccessURL":                "read the head again later; if it stays so, put its path below the base URL of its mode",
	"ConversationSettings.Modify":     "use headsctl tools put ID -f TOOL.yaml and headsctl tools remove ID NAME",
	"ConversationSettings.PutTool":    "correct it with headsctl tools put ID -f TOOL.yaml, or remove it with headsctl tools remove ID NAME",
	"ConversationSettings.Tools":      "use headsctl tools put ID -f TOOL.yaml",
	"ConvertOptions.AllowUnknownMode": "look at the head where it was created",
	"ConvertOptions.Voice":            "give both as PROVIDER/ID",
	"EnsureOptions.RemoveDuplicates":  "delete the others with headsctl webhooks delete",
	"HeadUpdate.OperationMode":        "set the mode with headsctl set ID operationMode=oc",
	"HeadUpdate.SystemPrompt":         `empty it with headsctl set ID 'promptConfig:={"system_prompt":""}'`,
	"HeadUpdate.Voice":                "give both",
	"Heads.Get":                       "look at the head where it was created",
	"Heads.SetVideoStreaming":         "switch it with headsctl call PUT /head/ID/video-streaming --query videoStreaming=true, which turns the splitter off, or use headsctl convert ID",
	"Heads.Update":                    "leave it out, and give the id of the other head in its place",
	"New":                             ownFault,
	"NewHeadUpdate":                   ownFault,
	"NewWebhookUpdate":                ownFault,
	"Request.Query":                   "use --query, or write the character as its percent escape",
	"Secret.Reveal":                   "give the value itself, which --show-secrets shows",
	"Webhooks.Ensure":                 "register one with headsctl webhooks ensure ID --url URL --event EVENT",
	"Webhooks.KeySource":              ownFault,
	"Webhooks.SetDelivery":            "turn delivery on with headsctl delivery on ID, or off with headsctl delivery off ID",
	"WithInsecureHTTP":                "use https",
	"WithPathToken":                   ownFault,
	"WithTokenSource":                 "give the access token",
	"context.Background":              ownFault,
	"url.PathEscape":                  "write such a character as its percent escape, a space as %20",
}

// remedyFor returns the remedy of an error or a finding. It names commands where the library
// names Go functions.
func remedyFor(remedy, use string) string {
	if use == "" {
		return remedy
	}
	return remedies[use]
}

// method matches the prefix of the library's errors, which means nothing to users of a
// terminal.
var method = regexp.MustCompile(`^(heads: |fleet: )?((fleet\.)?[A-Z][A-Za-z]*(\.[A-Z][A-Za-z]*)?: )?`)

// plainError returns the text of an error on one line, with remedies to type.
func plainError(err error) string {
	text := err.Error()
	for _, fault := range invalidErrors(err) {
		text = strings.ReplaceAll(text, fault.Error(), plainFault(fault))
	}
	text = show.Line(text)
	return text[len(method.FindString(text)):]
}

// plainFault is the text of a fault in an argument or a file.
func plainFault(fault *heads.InvalidError) string {
	field := fault.Field
	if entry, ok := strings.CutPrefix(field, "specs["); ok {
		field = "heads[" + entry // in the file, the list has this name
	}
	text := field + " " + fault.Problem
	if remedy := remedyFor(fault.Remedy, fault.Use); remedy != "" {
		text += "; " + remedy
	}
	return text
}

// invalidErrors returns the InvalidErrors in an error.
func invalidErrors(err error) []*heads.InvalidError {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case *heads.InvalidError:
		return []*heads.InvalidError{e}
	case interface{ Unwrap() error }:
		return invalidErrors(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all []*heads.InvalidError
		for _, part := range e.Unwrap() {
			all = append(all, invalidErrors(part)...)
		}
		return all
	}
	return nil
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
		f := &e.Findings[i]
		if f.Use != "" {
			f.Remedy, f.Use = sentence(placeID.ReplaceAllString(remedies[f.Use], "${1}"+id)), ""
		}
	}
	return e, nil
}

// sentence capitalizes a clause and ends it with a period.
func sentence(clause string) string {
	return string(unicode.ToUpper(rune(clause[0]))) + clause[1:] + "."
}
