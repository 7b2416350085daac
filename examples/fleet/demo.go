package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
	"github.com/headsapi/heads-go/headstest"
)

// demo runs this program as a child process, which converts the heads of an emulator and kills
// itself. Then it runs the same command again.
func demo(ctx context.Context, out io.Writer) error {
	fmt.Fprintln(out, "This works on an emulator of 60 heads. One request in ten fails.")
	service := headstest.NewServer(headstest.WithSeed(1), headstest.WithLatency(2*time.Millisecond))
	defer service.Close()
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return err
	}
	specs := filepath.Join(dir, "heads.json")
	if err := writeSpecs(specs, addHeads(service.Emulator)); err != nil {
		return err
	}
	service.Inject(headstest.Fault{Share: 0.05, Status: 503})
	service.Inject(headstest.Fault{Share: 0.05, Cut: headstest.CutAfter})
	program, err := os.Executable()
	if err != nil {
		return err
	}
	report := filepath.Join(dir, "heads.html")
	start := func(more ...string) error {
		args := append([]string{"-specs", specs, "-journal", filepath.Join(dir, "heads.journal"), "-report", report}, more...)
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Env = append(os.Environ(), "HEADS_BASE_URL="+service.URL, "HEADS_TOKEN="+service.Token, "NO_PROXY=*")
		cmd.Stdout, cmd.Stderr = out, out
		return cmd.Run()
	}
	if err := start("-die-after", "27"); !errors.As(err, new(*exec.ExitError)) {
		return fmt.Errorf("the process was not killed: %w", err)
	}
	fmt.Fprintln(out, "\nThe same command again:")
	if err := start(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe report, with every old access URL: %s\n", report)
	return nil
}

// addHeads adds 60 heads, some of which can't be converted, and returns their specs.
func addHeads(e *headstest.Emulator) []fleet.Spec {
	streaming, delivery := true, true
	expressive := e.AddVisual(headstest.Visual{Mode: heads.VisualModeTwoLoops})
	var specs []fleet.Spec
	for i := range 60 {
		head := headstest.Head{Name: fmt.Sprintf("Head %d", i+1)}
		spec := fleet.Spec{Streaming: &streaming, Delivery: &delivery}
		switch {
		case i%20 == 7:
			head.HeadVisualID = expressive
		case i%30 == 11:
			head.TTSProvider = "polly"
		case i%3 == 0:
			head.TTSProvider = "polly"
			spec.Voice = &heads.Voice{Provider: "elevenlabs", ID: "pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5"}
		}
		spec.ID = e.AddHead(head)
		specs = append(specs, spec)
	}
	return specs
}

func writeSpecs(path string, specs []fleet.Spec) error {
	document, err := json.MarshalIndent(specs, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, document, 0o600)
}
