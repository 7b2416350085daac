package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/similar"
	"github.com/headsapi/heads-go/fleet"
)

// settable are the fields of a head that set changes.
var settable = append(heads.WritableFields(), systemPrompt)

const systemPrompt = "promptConfig.system_prompt"

// setElsewhere names the command for fields that an update can't change.
var setElsewhere = map[string]string{
	"videoStreaming":       "use headsctl convert ID, with --undo for legacy mode",
	"enableEvents":         "use headsctl delivery on|off ID",
	"conversationSettings": "use headsctl tools put ID -f TOOL.yaml",
}

func (a *app) setCommand() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: "set ID FIELD=VALUE...", Short: "Change fields of a head", Args: want(2, -1, "the id of a head and at least one FIELD=VALUE"),
		Long: `Set changes fields of a head, and nothing else.

  FIELD=TEXT    the text as it is
  FIELD:=JSON   any other value
  FIELD=@FILE   the text of a file, without one newline at its end

It prints a line for each field that has changed, or "unchanged".`,
		Example: `  headsctl set 0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01 greetings='Welcome back!' 'suggestions:=["Opening hours"]'
  headsctl set 0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01 promptConfig.system_prompt=@prompt.txt --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.set(cmd, args[0], args[1:], dryRun) },
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var fields []string
			for _, name := range settable {
				fields = append(fields, name+"=")
			}
			return fields, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would change, and change nothing")
	return cmd
}

func (a *app) set(cmd *cobra.Command, id string, assignments []string, dryRun bool) error {
	if err := checkID(id); err != nil {
		return err
	}
	fields, err := a.parseAssignments(assignments)
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	spec := fleet.Spec{ID: id, Set: fields}
	if spec.Voice, err = takeVoice(cmd, c, id, fields); err != nil {
		return err
	}
	run := fleet.Apply
	if dryRun {
		run = fleet.Plan
	}
	report, err := run(cmd.Context(), c, []fleet.Spec{spec}, fleet.Options{})
	if report == nil {
		return a.faultyUnlessSent(err)
	}
	r := report.Results[0]
	a.printChanges(r.Changes)
	if r.Outcome == fleet.OutcomeUnchanged {
		a.say("unchanged")
	}
	if err == nil {
		err = r.Err
	}
	return err
}

// takeVoice removes provider and voice from the fields. If only one of them is given, the
// head's own is used for the other.
func takeVoice(cmd *cobra.Command, c *heads.Client, id string, fields map[string]any) (*heads.Voice, error) {
	provider, withProvider := fields["ttsProvider"]
	voice, withVoice := fields["ttsVoice"]
	if !withProvider && !withVoice {
		return nil, nil
	}
	delete(fields, "ttsProvider")
	delete(fields, "ttsVoice")
	if withProvider && withVoice {
		return voiceOf(provider, voice)
	}
	h, err := c.Heads.Get(cmd.Context(), id)
	if err != nil {
		return nil, err
	}
	if withProvider {
		return voiceOf(provider, h.TTSVoice)
	}
	return voiceOf(h.TTSProvider, voice)
}

func voiceOf(provider, voice any) (*heads.Voice, error) {
	p, isText := provider.(string)
	v, alsoText := voice.(string)
	if !isText || !alsoText || p == "" || v == "" {
		return nil, usage("ttsProvider and ttsVoice must be texts that are not empty")
	}
	return &heads.Voice{Provider: p, ID: v}, nil
}

// parseAssignments reads FIELD=TEXT, FIELD:=JSON and FIELD=@FILE. It reports all
// faults together.
func (a *app) parseAssignments(assignments []string) (map[string]any, error) {
	fields := map[string]any{}
	var faults []error
	for _, text := range assignments {
		name, value, err := a.parseAssignment(text)
		if _, twice := fields[name]; err == nil && twice {
			err = fmt.Errorf("field %s is set twice; set it once", name)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		fields[name] = value
	}
	return fields, faulty(errors.Join(faults...))
}

func (a *app) parseAssignment(text string) (name string, value any, err error) {
	name, given, found := strings.Cut(text, "=")
	if !found {
		return "", nil, fmt.Errorf("%q is not an assignment; write FIELD=VALUE or FIELD:=JSON", show.Line(text))
	}
	name, isJSON := strings.CutSuffix(name, ":")
	if err := checkField(name); err != nil {
		return "", nil, err
	}
	if path, isFile := strings.CutPrefix(given, "@"); isFile && !isJSON {
		content, err := a.readFile("the file of field "+name, path)
		if err != nil {
			return "", nil, cmp.Or(errors.Unwrap(err), err)
		}
		given = headsfile.WithoutNewline(string(content))
	}
	if !utf8.ValidString(given) {
		return "", nil, fmt.Errorf("the value of field %s is not UTF-8", name)
	}
	value = given
	if isJSON {
		decoder := json.NewDecoder(bytes.NewReader([]byte(given)))
		decoder.UseNumber()
		if !json.Valid([]byte(given)) || decoder.Decode(&value) != nil {
			return "", nil, fmt.Errorf("the value of field %s is not JSON; write a text with = instead of :=", name)
		}
	}
	if name == systemPrompt {
		return "promptConfig", map[string]any{"system_prompt": value}, nil
	}
	return name, value, nil
}

func checkField(name string) error {
	if slices.Contains(settable, name) {
		return nil
	}
	if command, ok := setElsewhere[name]; ok {
		return fmt.Errorf("field %s has a command of its own; %s", name, command)
	}
	return fmt.Errorf("field %q is unknown or read-only%s; headsctl set -h tells how to write an assignment", show.Line(name), similar.Hint(name, settable))
}
