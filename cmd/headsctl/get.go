package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
)

func (a *app) getCommand() *cobra.Command {
	var format string
	var raw, secrets bool
	cmd := &cobra.Command{
		Use: "get ID", Short: "Show a head", Args: want(1, 1, "the id of a head"),
		Example: "  headsctl get 0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01 -o yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if raw && format == "yaml" {
				return usage("--raw is JSON; leave out -o yaml")
			}
			h, err := a.getHead(cmd, args[0])
			if err != nil {
				return err
			}
			if raw {
				return a.printRaw(h, secrets)
			}
			shown := h.Redacted()
			if secrets {
				shown = h
			}
			return a.print(format, shown, func() { a.printHead(h) })
		},
	}
	outputFlag(cmd, &format)
	cmd.Flags().BoolVar(&raw, "raw", false, "print the JSON document as received")
	showSecretsFlag(cmd, &secrets)
	return cmd
}

// getHead reads one head.
func (a *app) getHead(cmd *cobra.Command, id string) (*heads.Head, error) {
	c, err := a.clientFor(id)
	if err != nil {
		return nil, err
	}
	return c.Heads.Get(cmd.Context(), id)
}

func (a *app) printRaw(h *heads.Head, secrets bool) error {
	doc := h.Raw
	if !secrets {
		doc = maskBody(doc)
	}
	_, err := fmt.Fprintf(a.stdout, "%s\n", doc)
	return err
}

// printHead writes what people look for in a head.
func (a *app) printHead(h *heads.Head) {
	tools := 0
	if h.ConversationSettings != nil {
		tools = len(h.ConversationSettings.Tools)
	}
	active := yesNo(h.IsActive)
	if !h.Has("isActive") {
		active = "unknown"
	}
	a.table([][]string{
		{"ID", h.ID},
		{"NAME", h.Name},
		{"MODE", modeOf(h)},
		{"VOICE", h.TTSProvider + "/" + h.TTSVoice},
		{"LANGUAGE", h.Language},
		{"OPERATION MODE", string(h.OperationMode)},
		{"DELIVERY", onOff(h.EnableEvents)},
		{"TOOLS", strconv.Itoa(tools)},
		{"ACTIVE", active},
		{"ACCESS URL", withoutQuery(h.PublicURL.Reveal())},
	})
}

// withoutQuery returns an access URL without its key.
func withoutQuery(address string) string {
	address, _, _ = strings.Cut(address, "?")
	return address
}

func modeOf(h *heads.Head) string {
	if h.VideoStreaming {
		return "streaming"
	}
	return "legacy"
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
