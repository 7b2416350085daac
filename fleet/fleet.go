package fleet

import (
	"context"
	"errors"
	"strings"

	heads "github.com/headsapi/heads-go"
)

// The errors of a run that was cut short, and of OpenJournal.
var (
	ErrStopped      = errors.New("fleet: stopped after too many temporary failures in a row")
	ErrJournalInUse = errors.New("fleet: the journal is in use")
)

// Options say how Plan and Apply work. The zero value is four heads at a time,
// without a journal.
type Options struct {
	Concurrency int                  // heads at a time; 0 means 4
	Journal     *Journal             // nil: nothing outlives the process
	Convert     heads.ConvertOptions // Voice and OnStep are not used
	StopAfter   int                  // temporary failures in a row after which the rest is skipped; 0 means 10, -1 never
	OnResult    func(Result)         // called when a head ends, in that order

	// OnStep is called for every step of a conversion. Of OnResult and OnStep
	// only one call runs at a time.
	OnStep func(headID string, step heads.ConversionStep)
}

// Plan reads the heads.
func Plan(ctx context.Context, c *heads.Client, specs []Spec, o Options) (*Report, error) {
	return nil, nil
}

// Apply changes the heads.
func Apply(ctx context.Context, c *heads.Client, specs []Spec, o Options) (*Report, error) {
	return nil, nil
}

// SpecOf reads a head.
func SpecOf(ctx context.Context, c *heads.Client, headID string) (*Spec, error) { return nil, nil }

func joinEvents(types []heads.EventType) string {
	texts := make([]string, len(types))
	for i, t := range types {
		texts[i] = string(t)
	}
	return strings.Join(texts, ", ")
}
