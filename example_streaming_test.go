package heads_test

import (
	"errors"
	"fmt"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

func ExampleHeadsService_ConvertToStreaming() {
	headID := srv.AddHead(headstest.Head{TTSProvider: "polly", TTSVoice: "Joanna"})
	conversion, err := client.Heads.ConvertToStreaming(ctx, headID, heads.ConvertOptions{
		Voice: &heads.Voice{Provider: "elevenlabs", ID: "pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5"},
	})
	var failed *heads.ConversionError
	switch {
	case errors.Is(err, heads.ErrVisualMode):
		fmt.Println("not with the visual of this head:", err)
	case errors.As(err, &failed):
		fmt.Println("stopped at", failed.Step, "old voice put back:", failed.RolledBack, err)
	case err == nil:
		fmt.Println("embed from now on:", conversion.After.Base) // After.Reveal() has the key
	}
	// Output: embed from now on: https://stream.example.test
}

func ExampleHeadsService_PlanStreaming() {
	visualID := srv.AddVisual(headstest.Visual{Mode: heads.VisualModeTwoLoops})
	headID := srv.AddHead(headstest.Head{HeadVisualID: visualID, TTSProvider: "polly", TTSVoice: "Joanna"})
	plan, err := client.Heads.PlanStreaming(ctx, headID, heads.ConvertOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ready:", plan.Ready())
	for _, blocker := range plan.Blockers {
		fmt.Println(errors.Is(blocker, heads.ErrVisualMode), errors.Is(blocker, heads.ErrProviderNotStreaming))
	}
	// Output:
	// ready: false
	// true false
	// false true
}

func ExampleHeadsService_Modify() {
	headID := newHead()
	head, err := client.Heads.Modify(ctx, headID, func(h *heads.Head) error {
		h.Greetings = "Welcome back!"
		h.Phrases = append(h.Phrases, "goodbye")
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(head.Phrases)

	_, err = client.Heads.Modify(ctx, headID, func(h *heads.Head) error {
		h.VideoStreaming = true
		return nil
	})
	fmt.Println(err)
	// Output:
	// [hello goodbye]
	// heads: Heads.Modify: videoStreaming can't be changed by an update; use Heads.SetVideoStreaming, or Heads.ConvertToStreaming and Heads.ConvertToLegacy
}

func ExampleHeadUpdateFromJSON() {
	headID := newHead()
	document := func() []byte {
		head, _ := client.Heads.Get(ctx, headID)
		return head.Raw.Bytes()
	}()
	update, err := heads.HeadUpdateFromJSON(document)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = client.Heads.Update(ctx, headID, update.Greetings("Welcome back!"))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleParseAccessURL() {
	address, err := heads.ParseAccessURL("https://chat.example.com/MyOrg-1234/li-28379?api_key=0123456789abcdef0123456789abcdef")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(address.PublicOrgID, address.PublicHeadID)
	fmt.Println(address)
	// Output:
	// MyOrg-1234 li-28379
	// https://chat.example.com/MyOrg-1234/li-28379?api_key=[redacted]
}
