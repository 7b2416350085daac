package fleet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
	"github.com/headsapi/heads-go/headstest"
)

// office has a head that can be converted, one that needs another voice, and one that can't be
// converted.
func office() (e *headstest.Emulator, ids []string) {
	e = headstest.NewEmulator(headstest.WithSeed(1))
	expressive := e.AddVisual(headstest.Visual{Mode: heads.VisualModeTwoLoops})
	return e, []string{
		e.AddHead(headstest.Head{Name: "Lobby"}),
		e.AddHead(headstest.Head{Name: "Bar", TTSProvider: "polly", TTSVoice: "Joanna"}),
		e.AddHead(headstest.Head{Name: "Garden", HeadVisualID: expressive}),
	}
}

func wanted(ids []string) []fleet.Spec {
	streaming := true
	voice := heads.Voice{Provider: "elevenlabs", ID: "pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5"}
	var specs []fleet.Spec
	for _, id := range ids {
		specs = append(specs, fleet.Spec{ID: id, Streaming: &streaming, Voice: &voice})
	}
	return specs
}

func ExamplePlan() {
	emulator, ids := office()
	defer emulator.Close()
	client, ctx := emulator.Client(), context.Background()

	report, err := fleet.Plan(ctx, client, wanted(ids), fleet.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range report.Results {
		fmt.Println(r.Outcome, r.Label)
		for _, change := range r.Changes {
			fmt.Println(" ", change)
		}
	}
	// Output:
	// pending Lobby
	//   voice: azure/en-US-plain → elevenlabs/pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5
	//   streaming: false → true
	// pending Bar
	//   voice: polly/Joanna → elevenlabs/pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5
	//   streaming: false → true
	// blocked Garden
}

func ExampleApply() {
	emulator, ids := office()
	defer emulator.Close()
	client, ctx, specs := emulator.Client(), context.Background(), wanted(ids)
	folder, err := os.MkdirTemp("", "fleet")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)

	err = func() error {
		journal, err := fleet.OpenJournal(filepath.Join(folder, "heads.journal"))
		if err != nil {
			return err
		}
		defer journal.Close()
		report, err := fleet.Apply(ctx, client, specs, fleet.Options{Journal: journal})
		if report == nil {
			return err // nothing was sent
		}
		for _, move := range report.Moves() {
			fmt.Println(move.Label, "moved from", move.Old.Base, "to", move.New.Base)
		}
		fmt.Println(report.Count(fleet.OutcomeChanged), "changed,", report.Count(fleet.OutcomeBlocked), "blocked")
		return err
	}()
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// Lobby moved from https://chat.example.test to https://stream.example.test
	// Bar moved from https://chat.example.test to https://stream.example.test
	// 2 changed, 1 blocked
}

func ExampleSpecOf() {
	emulator, ids := office()
	defer emulator.Close()
	client, ctx := emulator.Client(), context.Background()

	spec, err := fleet.SpecOf(ctx, client, ids[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	spec.Set["greetings"] = "Good evening"
	report, err := fleet.Apply(ctx, client, []fleet.Spec{*spec}, fleet.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Results[0].Changes)
	// Output: [greetings: Hello, how can I help you? → Good evening]
}
