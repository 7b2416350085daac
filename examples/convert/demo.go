package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

const demoNames = "default, two_loops, bad-provider or flaky"

// demo is a demonstration with one head on the emulator.
type demo struct {
	about    string
	visual   heads.VisualMode
	newVoice bool // the head's own voice can't stream
	outage   bool // the service fails until the client stops retrying
}

var demos = map[string]demo{
	"default": {
		about:  "a head whose voice has to be changed first",
		visual: heads.VisualModeDefault, newVoice: true,
	},
	"two_loops": {
		about:  "an expressive head, which can't be converted",
		visual: heads.VisualModeTwoLoops, newVoice: true,
	},
	"bad-provider": {
		about:  "a head that is to keep a voice which can't stream",
		visual: heads.VisualModeDefault,
	},
	"flaky": {
		about:  "a service that fails in the middle, and has recovered at the second run",
		visual: heads.VisualModeDefault, newVoice: true, outage: true,
	},
}

// runDemo converts a head on an emulator in memory.
func runDemo(ctx context.Context, out io.Writer, s settings) error {
	d, ok := demos[s.demo]
	if !ok {
		return fmt.Errorf("-demo %s is unknown; there are %s", s.demo, demoNames)
	}
	fmt.Fprintf(out, "Demo %s: %s.\n", s.demo, d.about)
	emulator := headstest.NewEmulator(headstest.WithSeed(1))
	defer emulator.Close()
	s.head = emulator.AddHead(headstest.Head{
		Name: "Ada", TTSProvider: "polly", TTSVoice: "Joanna", VideoStreaming: s.toLegacy,
		HeadVisualID: emulator.AddVisual(headstest.Visual{Mode: d.visual}),
	})
	if d.newVoice && s.provider == "" && s.voice == "" {
		s.provider, s.voice = "elevenlabs", "pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5"
	}
	if d.outage {
		emulator.Inject(headstest.Fault{
			Method: http.MethodPut, Route: "/head/{headId}/video-streaming", Status: http.StatusServiceUnavailable,
			Times: 1 + heads.DefaultRetryPolicy().MaxRetries, Body: `{"message":"the renderer is being restarted"}`,
		})
		s.tries = max(s.tries, 2)
	}
	return convert(ctx, out, emulator.Client(), s)
}
