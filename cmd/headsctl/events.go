package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/redact"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/headstest"
)

// patience is how long the service waits for a receiver.
const patience = 5 * time.Second

func (a *app) eventsCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use: "events", Short: "Diagnose a recorded delivery, or send one",
		Long: "Events works with deliveries to a receiver of yours. The shared key comes from\n--key-file or HEADS_SHARED_KEY.",
	})
	cmd.AddCommand(a.eventsVerifyCommand(), a.eventsSendCommand())
	return cmd
}

func keyFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "key-file", "", "read the shared key from `FILE` instead of HEADS_SHARED_KEY")
}

func (a *app) sharedKey(file string) (string, error) {
	if file != "" {
		return a.readSecret("--key-file", file)
	}
	if key := os.Getenv("HEADS_SHARED_KEY"); key != "" {
		return key, nil
	}
	return "", usage("there is no shared key; set HEADS_SHARED_KEY or give --key-file")
}

func (a *app) eventsVerifyCommand() *cobra.Command {
	var body, signature, keyFile string
	cmd := &cobra.Command{
		Use: "verify --body FILE --signature TEXT", Short: "Tell why the signature of a recorded delivery is right or wrong", Args: want(0, 0, "no arguments"),
		Long:    "Verify ends with 0 if the signature is right, and with 1 if it is wrong. It sends nothing.",
		Example: "  headsctl events verify --body delivery.json --signature 5f1d… --key-file shared-key",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if body == "" || !cmd.Flags().Changed("signature") {
				return usage("%s wants --body and --signature", cmd.CommandPath())
			}
			key, err := a.sharedKey(keyFile)
			if err != nil {
				return err
			}
			text, err := a.readInput("the file of --body", body)
			if err != nil {
				return err
			}
			if heads.VerifySignature(text, signature, key) == nil {
				a.say("the signature is right")
				return nil
			}
			a.say("%s", show.Line(heads.DiagnoseSignature(text, signature, key)))
			return exit(exitFailed)
		},
	}
	cmd.Flags().StringVar(&body, "body", "", "`FILE` with the body as it arrived; - is stdin")
	cmd.Flags().StringVar(&signature, "signature", "", "value of the header "+heads.SignatureHeader)
	keyFlag(cmd, &keyFile)
	return cmd
}

func (a *app) eventsSendCommand() *cobra.Command {
	var eventType, head, session, keyFile string
	cmd := &cobra.Command{
		Use: "send URL --type EVENT --head ID", Short: "Send a signed event to a receiver of yours", Args: want(1, 1, "the URL of a receiver"),
		Long:    "Send posts an event as the service does and prints the status of the answer. It\nends with 0 for a status from 200 to 299.",
		Example: "  headsctl events send http://127.0.0.1:8080/events --type start_conversation --head 0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReceiver(args[0]); err != nil {
				return err
			}
			if err := oneOf("the event", eventType, eventTypes); err != nil {
				return err
			}
			if err := checkID(head); err != nil {
				return err
			}
			key, err := a.sharedKey(keyFile)
			if err != nil {
				return err
			}
			if session == "" {
				session = "session-" + strings.ToLower(rand.Text())
			}
			event := heads.Event{Type: heads.EventType(eventType), HeadID: head, SessionID: session, PublicHeadID: "li-00000", PublicOrgID: "MyOrg-0000"}
			return a.sendEvent(cmd.Context(), headstest.NewEventRequest(args[0], event, key))
		},
	}
	cmd.Flags().StringVar(&eventType, "type", "", "`EVENT` to send")
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(eventTypes, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringVar(&head, "head", "", "`ID` of the head")
	cmd.Flags().StringVar(&session, "session", "", "`ID` of the session (default: a new one)")
	keyFlag(cmd, &keyFile)
	return cmd
}

func checkReceiver(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
		return usage("%q is not the URL of a receiver; give an http or https URL", show.Line(redact.Text(text)))
	}
	return nil
}

// sendEvent posts an event once and prints what the receiver answered.
func (a *app) sendEvent(ctx context.Context, request *http.Request) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	started := time.Now()
	response, err := client.Do(request.WithContext(ctx))
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("it took longer than the %s that the service waits", patience)
		}
		return fmt.Errorf("the receiver at %s did not answer: %w; check that it is running", request.URL.Host, withoutURL(err))
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	if a.debug {
		a.note("debug: POST %s %d in %s", request.URL.Host, response.StatusCode, time.Since(started).Round(100*time.Microsecond))
	}
	a.say("%d %s", response.StatusCode, http.StatusText(response.StatusCode))
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Errorf("the receiver answered %d instead of 200 to 299; the service would send the event again", response.StatusCode)
	}
	return nil
}

// withoutURL removes the URL, whose query may hold a secret, from an error of net/http.
func withoutURL(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
