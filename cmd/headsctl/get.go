package main

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/redact"
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
			shown, doc, err := shownHead(h, secrets)
			if err != nil {
				return err
			}
			return a.print(format, doc, func() { a.printHead(shown, activeOf(h), secrets) })
		},
	}
	outputFlag(cmd, &format)
	cmd.Flags().BoolVar(&raw, "raw", false, "print the JSON document as received")
	showSecretsFlag(cmd, &secrets)
	return cmd
}

func (a *app) printRaw(h *heads.Head, secrets bool) error {
	doc := h.Raw.Bytes()
	if !secrets {
		doc = redact.Body(doc)
	}
	a.stdout.Document(doc)
	return nil
}

// printHead prints the main fields of a head.
func (a *app) printHead(h *heads.Head, active string, secrets bool) {
	a.stdout.Table([][]string{
		{"ID", h.ID},
		{"NAME", h.Name},
		{"MODE", modeOf(h)},
		{"VOICE", h.TTSProvider + "/" + h.TTSVoice},
		{"LANGUAGE", h.Language},
		{"OPERATION MODE", string(h.OperationMode)},
		{"DELIVERY", onOff(h.EnableEvents)},
		{"TOOLS", toolNames(h)},
		{"ACTIVE", active},
		{"ACCESS URL", shownAddress(h, secrets)},
	})
}

// activeOf reports whether a head is active, if the service has sent it.
func activeOf(h *heads.Head) string {
	if !h.Has("isActive") {
		return "unknown"
	}
	return yesNo(h.IsActive)
}

// toolNames lists the tools of a head.
func toolNames(h *heads.Head) string {
	if h.ConversationSettings == nil || len(h.ConversationSettings.Tools) == 0 {
		return "none"
	}
	var names []string
	for _, t := range h.ConversationSettings.Tools {
		names = append(names, cmp.Or(t.Name, "(without a name)"))
	}
	return strings.Join(names, ", ")
}

// shownAddress returns the access URL of a head as it is printed: without its key unless
// secrets is set.
func shownAddress(h *heads.Head, secrets bool) string {
	address := h.PublicURL.Reveal()
	if short := withoutQuery(address); short != address && !secrets {
		return short + " (key hidden)"
	}
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
