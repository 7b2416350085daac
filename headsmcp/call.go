package headsmcp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/headsapi/heads-go"
)

// call answers a call of the head.
func (b *bridge) call(ctx context.Context, given json.RawMessage) (string, error) {
	arguments, err := b.arguments(ctx, given)
	if err != nil {
		return "", err
	}
	result, err := b.link.call(ctx, &mcp.CallToolParams{Name: b.name, Arguments: arguments})
	if err != nil {
		return "", err
	}
	return reply(result)
}

// reply returns what the model reads.
func reply(result *mcp.CallToolResult) (string, error) {
	var parts []string
	texts := 0
	for _, content := range result.Content {
		part, isText := partOf(content)
		if part == "" {
			continue
		}
		parts = append(parts, part)
		if isText {
			texts++
		}
	}
	if texts == 0 && result.StructuredContent != nil {
		parts = slices.Insert(parts, 0, text(result.StructuredContent))
	}
	answer := strings.Join(parts, "\n")
	switch {
	case result.NeedsInput():
		return "", errors.New("headsmcp: call a tool: the server asks for input, which no visitor can give it")
	case result.IsError && answer == "":
		return "", errors.New("headsmcp: call a tool: the server answered with an error without a text")
	case result.IsError:
		return "", heads.ToolError{Message: answer}
	case answer == "":
		return "Done", nil
	default:
		return answer, nil
	}
}

// partOf returns the text of a content, or its kind in brackets.
func partOf(content mcp.Content) (part string, isText bool) {
	switch c := content.(type) {
	case *mcp.TextContent:
		return strings.TrimSpace(c.Text), true
	case *mcp.ImageContent:
		return "[image]", false
	case *mcp.AudioContent:
		return "[audio]", false
	case *mcp.EmbeddedResource:
		if c.Resource != nil && strings.TrimSpace(c.Resource.Text) != "" {
			return strings.TrimSpace(c.Resource.Text), true
		}
	}
	return "[resource]", false
}
