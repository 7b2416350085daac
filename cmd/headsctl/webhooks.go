package main

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/redact"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
)

// eventTypes are the types that a webhook can be registered for.
var eventTypes = []string{
	string(heads.EventStartConversation), string(heads.EventEndConversation),
	string(heads.EventInactivityWarning), string(heads.EventTimeoutConversation),
}

func (a *app) webhooksCommand() *cobra.Command {
	cmd := group(&cobra.Command{Use: "webhooks", Short: "List, register and delete webhooks"})
	cmd.AddCommand(a.webhooksListCommand(), a.webhooksEnsureCommand(), a.webhooksDeleteCommand())
	return cmd
}

func (a *app) webhooksListCommand() *cobra.Command {
	var format string
	var secrets bool
	cmd := &cobra.Command{
		Use: "list ID", Short: "List the webhooks of a head", Args: want(1, 1, "the id of a head"),
		Long: "List prints the webhooks of a head. If delivery is off, so that none of them receives\nan event, stderr says so.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.clientFor(args[0])
			if err != nil {
				return err
			}
			list, err := c.Webhooks.List(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			shown := webhookDocuments(list, secrets)
			if err := a.print(format, shown, func() { a.printWebhooks(shown, secrets) }); err != nil {
				return err
			}
			h, err := c.Heads.Get(cmd.Context(), args[0])
			if err == nil && !h.EnableEvents {
				a.note("delivery is off, so no webhook receives an event; turn it on with: headsctl delivery on %s", args[0])
			}
			return err
		},
	}
	outputFlag(cmd, &format)
	showSecretsFlag(cmd, &secrets)
	return cmd
}

// webhookDocuments returns the JSON of webhooks as it is shown, never nil.
func webhookDocuments(list []heads.Webhook, secrets bool) []json.RawMessage {
	shown := make([]json.RawMessage, len(list))
	for i := range list {
		doc, _ := rawjson.Encode(list[i]) // plain values
		if shown[i] = redact.Restore(doc, rawjson.AppendMember([]byte("{"), "sharedKey", append(rawjson.String(list[i].SharedKey.Reveal()), '}'))); !secrets {
			shown[i] = redact.Body(shown[i])
		}
	}
	return shown
}

func (a *app) printWebhooks(list []json.RawMessage, secrets bool) {
	rows := [][]string{{"ID", "EVENTS", "URL", "CREATED"}}
	if secrets {
		rows[0] = append(rows[0], "SHARED KEY")
	}
	for _, doc := range list {
		var w heads.Webhook
		_ = json.Unmarshal(doc, &w) // it was one
		var events []string
		for _, event := range w.Events() {
			events = append(events, string(event))
		}
		row := []string{strconv.FormatInt(w.ID, 10), strings.Join(events, ","), w.URL, w.CreatedAt.String()}
		if secrets {
			row = append(row, w.SharedKey.Reveal())
		}
		rows = append(rows, row)
	}
	a.stdout.Table(rows)
}

func (a *app) webhooksEnsureCommand() *cobra.Command {
	var url string
	var events []string
	var secrets bool
	cmd := &cobra.Command{
		Use: "ensure ID --url URL --event EVENT...", Short: "Register a webhook unless it is there already", Args: want(1, 1, "the id of a head"),
		Long: `Ensure turns the delivery of events on and registers a webhook for exactly the
given events, or changes the one of the same URL. It prints the webhook's id.`,
		Example: "  headsctl webhooks ensure 0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01 --url https://example.com/events --event start_conversation",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkID(args[0]); err != nil {
				return err
			}
			spec := heads.WebhookSpec{HeadID: args[0], URL: url}
			for _, event := range events {
				if err := oneOf("the event", event, eventTypes); err != nil {
					return err
				}
				spec.Events = append(spec.Events, heads.EventType(event))
			}
			if url == "" || len(events) == 0 {
				return usage("%s wants --url and at least one --event", cmd.CommandPath())
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			w, err := c.Webhooks.Ensure(cmd.Context(), spec, heads.EnsureOptions{})
			if err != nil {
				return err
			}
			if len(w.Duplicates) > 0 {
				a.note("the head has more registrations of this URL, and sends each event to all of them: %s", idList(w.Duplicates))
			}
			a.note("the number on stdout is the id of the webhook, which headsctl webhooks delete takes")
			if secrets {
				a.say("%d %s", w.ID, w.SharedKey.Reveal())
				return nil
			}
			a.say("%d", w.ID)
			return nil
		},
	}
	cmd.Flags().StringVar(&url, "url", "", "`URL` that receives the events; https")
	cmd.Flags().StringSliceVar(&events, "event", nil, "`EVENT` to receive; may be given again")
	_ = cmd.RegisterFlagCompletionFunc("event", cobra.FixedCompletions(eventTypes, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().BoolVar(&secrets, "show-secrets", false, "print the shared key after the id")
	return cmd
}

func idList(ids []int64) string {
	var texts []string
	for _, id := range ids {
		texts = append(texts, strconv.FormatInt(id, 10))
	}
	return strings.Join(texts, ", ")
}

func (a *app) webhooksDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use: "delete WEBHOOK_ID", Short: "Delete a webhook", Args: want(1, 1, "the id of a webhook"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || id < 1 {
				return usage("%q is not the id of a webhook; headsctl webhooks list shows them", show.Line(args[0]))
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			if err := c.Webhooks.Delete(cmd.Context(), id); err != nil {
				return err
			}
			a.say("deleted %d", id)
			return nil
		},
	}
}

func (a *app) deliveryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delivery on|off ID...", Short: "Turn the delivery of events on or off", Args: want(2, -1, "on or off, and the ids of heads"),
		Example:   "  headsctl delivery off 0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01",
		ValidArgs: []string{"on", "off"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("the state of the delivery", args[0], []string{"on", "off"}); err != nil {
				return err
			}
			targets, err := targetsOf(args[1:])
			if err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			var failures []error
			for _, t := range targets {
				if err := c.Webhooks.SetDelivery(cmd.Context(), t.id, args[0] == "on"); err != nil {
					failures = append(failures, err)
					if errors.Is(err, heads.ErrUnauthorized) {
						break // for the others, too
					}
					continue
				}
				a.say("%s %s", args[0], t.id)
			}
			if cmd.Context().Err() != nil {
				return cmd.Context().Err()
			}
			return a.failures(failures)
		},
	}
	return cmd
}
