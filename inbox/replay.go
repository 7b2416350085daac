package inbox

import (
	"context"
	"errors"
)

// Replay calls f for the stored events that q selects, handled or not, ordered by sequence. It
// changes nothing, and Commit returns an error. Handled events are stored until the retention ends,
// dead letters until they are deleted. If f returns an error, Replay stops and returns it. Replay
// skips damaged events and returns ErrDamaged at the end.
func (in *Inbox) Replay(ctx context.Context, q Query, f func(context.Context, *Delivery) error) error {
	if f == nil {
		return invalid("Replay", "f", "is nil", "give the function that reads an event")
	}
	var damaged error
	for r, err := range in.pages(ctx, "Replay", replayPages, q) {
		if err != nil {
			return err
		}
		d, err := deliveryOf(r)
		if err != nil {
			damaged = errors.Join(damaged, err)
			continue
		}
		if err := f(ctx, d); err != nil {
			return err
		}
	}
	return damaged
}
