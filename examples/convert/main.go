// Convert switches one head from legacy to streaming mode. It prints the plan, each step as it
// happens, the old and the new access URL, and where to replace the old one.
//
// Without settings, it uses an emulator in this process:
//
//	go run ./examples/convert -demo flaky
//
// With HEADS_BASE_URL and HEADS_TOKEN, it converts the head given by -head or HEADS_HEAD_ID on that
// service. Use -dry-run first.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	heads "github.com/headsapi/heads-go"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// settings are the values of the flags.
type settings struct {
	head, provider, voice, demo                string
	dryRun, showKey, toLegacy                  bool
	anyProvider, unknownMode, keepVoiceOnError bool
	tries                                      int
}

func run(ctx context.Context, out io.Writer, args []string) error {
	var s settings
	flags := flag.NewFlagSet("convert", flag.ContinueOnError)
	flags.StringVar(&s.head, "head", os.Getenv("HEADS_HEAD_ID"), "id of the head, a UUID")
	flags.StringVar(&s.voice, "voice", "", "new voice, given with -provider; without it the head keeps its voice")
	flags.StringVar(&s.provider, "provider", "", "text-to-speech provider of the new voice, one that can stream")
	flags.BoolVar(&s.dryRun, "dry-run", false, "show the plan and change nothing")
	flags.BoolVar(&s.showKey, "show-key", false, "show access URLs with their keys")
	flags.BoolVar(&s.toLegacy, "to-legacy", false, "go back, from streaming to legacy mode")
	flags.BoolVar(&s.anyProvider, "any-provider", false, "let the service decide whether the provider can stream")
	flags.BoolVar(&s.unknownMode, "unknown-mode", false, "let the service decide if it does not show the mode of the visual")
	flags.BoolVar(&s.keepVoiceOnError, "no-rollback", false, "leave the new voice in place when the switch fails")
	flags.IntVar(&s.tries, "tries", 1, "how often to run the conversion if the service fails")
	flags.StringVar(&s.demo, "demo", "", "work on an emulator: "+demoNames)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.dryRun && s.toLegacy {
		return errors.New("-dry-run is not for -to-legacy: the way back has one step and no plan")
	}
	if s.demo == "" && os.Getenv("HEADS_BASE_URL") == "" {
		s.demo = "default"
		fmt.Fprintln(out, "No HEADS_BASE_URL is set, so this works on an emulator inside the program.")
	}
	if s.demo != "" {
		return runDemo(ctx, out, s)
	}
	client, err := heads.NewFromEnv()
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "Working on the service at HEADS_BASE_URL.")
	return convert(ctx, out, client, s)
}

func (s settings) options() heads.ConvertOptions {
	o := heads.ConvertOptions{AllowAnyProvider: s.anyProvider, AllowUnknownMode: s.unknownMode, NoRollback: s.keepVoiceOnError}
	if s.provider != "" || s.voice != "" {
		o.Voice = &heads.Voice{Provider: s.provider, ID: s.voice}
	}
	return o
}

func convert(ctx context.Context, out io.Writer, client *heads.Client, s settings) error {
	if s.toLegacy {
		return convertBack(ctx, out, client, s)
	}
	plan, err := client.Heads.PlanStreaming(ctx, s.head, s.options())
	if err != nil {
		return err
	}
	printPlan(out, plan)
	if !plan.Ready() {
		return fmt.Errorf("head %s was not changed: what blocks the switch is listed above", s.head)
	}
	if s.dryRun {
		fmt.Fprintln(out, "\nNothing was changed, because of -dry-run.")
		return nil
	}
	conversion, err := tryToConvert(ctx, out, client, s)
	if conversion != nil {
		printAddresses(out, conversion, s.showKey)
	}
	return err
}

// tryToConvert runs the conversion up to s.tries times. Each run reads the head and does the steps
// that remain.
func tryToConvert(ctx context.Context, out io.Writer, client *heads.Client, s settings) (conversion *heads.Conversion, err error) {
	o := s.options()
	o.OnStep = func(step heads.ConversionStep) { printStep(out, step) }
	for try := 1; ; try++ {
		fmt.Fprintf(out, "\nConverting, run %d:\n", try)
		conversion, err = client.Heads.ConvertToStreaming(ctx, s.head, o)
		printFailure(out, err)
		if err == nil || conversion != nil || try >= s.tries || ctx.Err() != nil {
			return conversion, err
		}
	}
}

func convertBack(ctx context.Context, out io.Writer, client *heads.Client, s settings) error {
	fmt.Fprintln(out, "\nConverting back to legacy mode:")
	conversion, err := client.Heads.ConvertToLegacy(ctx, s.head, heads.ConvertOptions{})
	var failure *heads.ConversionError
	switch {
	case conversion != nil:
		printSteps(out, conversion.Steps)
	case errors.As(err, &failure):
		printSteps(out, failure.Done)
	}
	printFailure(out, err)
	if conversion != nil {
		printAddresses(out, conversion, s.showKey)
	}
	return err
}
