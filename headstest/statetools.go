package headstest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
)

// addTool adds a tool to the settings of a head.
func (st *state) addTool(headID string, definition json.RawMessage) error {
	h, err := st.headToChange(headID)
	if err != nil {
		return fmt.Errorf("headstest: %w", err)
	}
	var added document
	if err := json.Unmarshal(definition, &added); err != nil || added == nil {
		return errors.New("headstest: the definition of the tool is not a JSON object")
	}
	var settings document
	var tools []json.RawMessage
	_ = json.Unmarshal(h["conversationSettings"], &settings) // other JSON has no tools
	_ = json.Unmarshal(settings["tools"], &tools)
	next := document{}
	maps.Copy(next, settings)
	next["tools"] = list(append(tools, definition))
	if err := st.checkTools(decode(next.encode()).(map[string]any)); err != nil {
		return fmt.Errorf("headstest: %w", err)
	}
	h["conversationSettings"] = next.encode()
	h.touch()
	return nil
}

// checkTools refuses definitions that do not have the shape of the contract. Keys
// that the contract doesn't have may hold any JSON. Like the service, it accepts
// a parameter of any type or without one, and parameters as an object, such as a JSON Schema,
// although the head can't be loaded with them.
func (st *state) checkTools(settings map[string]any) error {
	given, ok := settings["tools"]
	if !ok {
		return nil
	}
	tools, ok := given.([]any)
	if !ok {
		return stateErrorf(badValue, "conversationSettings.tools must be a list")
	}
	for i, t := range tools {
		tool, _ := t.(map[string]any)
		if problem := st.toolProblem(tool); problem != "" {
			return stateErrorf(badValue, "conversationSettings.tools[%d] %s", i, problem)
		}
	}
	return nil
}

func (st *state) toolProblem(tool map[string]any) string {
	if name, _ := tool["name"].(string); name == "" {
		return "needs a name"
	}
	if d, ok := tool["description"]; ok && !isA[string](d) {
		return "must have a string description"
	}
	if target, _ := tool["url"].(string); st.checkOutbound(target) != nil {
		return "needs a url that is an HTTPS address"
	}
	if hasKey(tool, "parameters") && !isA[[]any](tool["parameters"]) && !hasUnloadableParameters(tool) {
		return "must have a list of parameters"
	}
	parameters, _ := tool["parameters"].([]any)
	for i, p := range parameters {
		parameter, _ := p.(map[string]any)
		if problem := parameterProblem(parameter); problem != "" {
			return fmt.Sprintf("parameters[%d] %s", i, problem)
		}
	}
	return ""
}

func parameterProblem(p map[string]any) string {
	if name, _ := p["name"].(string); name == "" {
		return "needs a name"
	}
	if t := p["type"]; t != nil && !isA[string](t) {
		return "must have a string type, or none"
	}
	if d, ok := p["description"]; ok && !isA[string](d) {
		return "must have a string description"
	}
	return ""
}

// hasUnloadableParameters reports whether a stored tool prevents its head from
// loading.
func hasUnloadableParameters(tool map[string]any) bool {
	return isA[map[string]any](tool["parameters"])
}

// loads returns an error if a tool prevents the head from loading.
func loads(h document) error {
	settings, _ := decode(h["conversationSettings"]).(map[string]any)
	tools, _ := settings["tools"].([]any)
	for i, t := range tools {
		if tool, _ := t.(map[string]any); hasUnloadableParameters(tool) {
			return fmt.Errorf("headstest: the head can't be loaded: the parameters of conversationSettings.tools[%d] are an object; make them a list", i)
		}
	}
	return nil
}

// tool is the part of a definition that CallTool needs.
type tool struct{ Name, URL string }

// findTool returns the first tool of that name.
func findTool(h document, name string) (tool, bool) {
	for _, t := range toolsOf(h) {
		if t.str("name") == name {
			return tool{name, t.str("url")}, true
		}
	}
	return tool{}, false
}

// toolsOf returns the tools of a head. It skips items that are not objects.
func toolsOf(h document) []document {
	var settings document
	_ = json.Unmarshal(h["conversationSettings"], &settings) // other JSON has no tools
	return objects(settings["tools"])
}
