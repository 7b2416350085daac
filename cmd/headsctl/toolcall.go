package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/similar"
	"github.com/headsapi/heads-go/headstest"
)

func (a *app) toolsCallCommand() *cobra.Command {
	return &cobra.Command{
		Use: "call ID TOOL [ARG=VALUE]...", Short: "Call a tool of a head as the service does", Args: want(2, -1, "the id of a head, the name of a tool, and arguments"),
		Long: `Call sends a call to the URL of a registered tool, with the arguments and the
metadata of a new session, and prints the reply. The service is only asked for the
head. It ends with 1 if the service could not use the reply, and says what is wrong.

ARG=VALUE is a text, or what the tool declares: a number, a boolean, a list or an
object is read as JSON. ARG:=JSON is always JSON.`,
		Example: "  headsctl tools call 0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01 order_status order=7",
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.getHead(cmd, args[0])
			if err != nil {
				return err
			}
			tool, err := toolNamed(h, args[1])
			if err != nil {
				return err
			}
			values, err := toolArguments(tool, args[2:])
			if err != nil {
				return err
			}
			call, err := callTool(cmd.Context(), h, tool, values)
			if err != nil {
				return err
			}
			if len(call.Reply) > 0 {
				a.stdout.Document(call.Reply)
			}
			if call.Problem != "" {
				return fmt.Errorf("the service could not use the reply of tool %s: %s", show.Line(tool.Name), show.Line(call.Problem))
			}
			return nil
		},
	}
}

// toolNamed finds a tool of a head.
func toolNamed(h *heads.Head, name string) (heads.Tool, error) {
	var names []string
	if h.ConversationSettings != nil {
		for _, t := range h.ConversationSettings.Tools {
			if t.Name == name {
				return t, nil
			}
			names = append(names, t.Name)
		}
	}
	return heads.Tool{}, fmt.Errorf("the head has no tool %q%s; headsctl tools list shows them", show.Line(name), similar.Hint(name, names))
}

// toolArguments reads ARG=VALUE and ARG:=JSON. It reports all faults together.
func toolArguments(tool heads.Tool, assignments []string) (map[string]any, error) {
	types := map[string]string{}
	var names []string
	for _, p := range tool.Parameters {
		types[p.Name] = p.Type
		names = append(names, p.Name)
	}
	values := map[string]any{}
	var faults []error
	for _, text := range assignments {
		name, given, found := strings.Cut(text, "=")
		name, isJSON := strings.CutSuffix(name, ":")
		_, twice := values[name]
		declared, known := types[name]
		isJSON = isJSON || known && declared != "string" && declared != ""
		switch {
		case !found:
			faults = append(faults, fmt.Errorf("%q is not an argument; write ARG=VALUE or ARG:=JSON", show.Line(text)))
		case !known:
			faults = append(faults, fmt.Errorf("the tool has no parameter %q%s", show.Line(name), similar.Hint(name, names)))
		case twice:
			faults = append(faults, fmt.Errorf("argument %s is given twice; give it once", name))
		case isJSON && !json.Valid([]byte(given)):
			faults = append(faults, fmt.Errorf("argument %s is of type %q, and its value is not JSON", name, show.Line(declared)))
		case isJSON:
			values[name] = json.RawMessage(given)
		default:
			values[name] = given
		}
	}
	return values, faulty(errors.Join(faults...))
}

// callTool calls a tool through an emulator that has the head, so that a reply is
// judged in the same words.
func callTool(ctx context.Context, h *heads.Head, tool heads.Tool, values map[string]any) (*headstest.ToolCall, error) {
	e := headstest.NewEmulator(headstest.WithLoopbackHTTP())
	defer e.Close()
	head, err := json.Marshal(map[string]any{
		"id": h.ID, "name": h.Name, "language": h.Language, "operationMode": h.OperationMode, "isActive": h.IsActive || !h.Has("isActive"),
		"publicId": h.PublicID, "orgId": h.OrgID, "orgPublicId": h.OrgPublicID,
	})
	if err != nil {
		return nil, err
	}
	definition, err := json.Marshal(tool)
	if err != nil {
		return nil, err
	}
	if _, err := e.Import(headstest.Seed{Heads: []json.RawMessage{head}}); err != nil {
		return nil, inService(err)
	}
	if err := e.AddTool(h.ID, definition); err != nil {
		return nil, inService(err)
	}
	call, err := e.CallTool(ctx, h.ID, tool.Name, values)
	return call, inService(err)
}

// inService takes the name of the emulator from an error, which is about the service
// here.
func inService(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("the service would not call the tool: %s", strings.ReplaceAll(err.Error(), "headstest: ", ""))
}
