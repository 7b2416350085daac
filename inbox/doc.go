// Package inbox stores webhook events before they are answered, and has them
// handled: no event that was answered 200 is lost, and an effect in the same
// database happens exactly once.
//
//	db, err := sqlite.Open("events.db")
//	if err != nil {
//		return err
//	}
//	in, err := inbox.Open(ctx, db)
//	if err != nil {
//		return err
//	}
//	handler, err := in.Handler(heads.SharedKeys(sharedKey))
//	if err != nil {
//		return err
//	}
//	mux.Handle("/webhooks/heads", handler)
//	return in.Run(ctx, func(ctx context.Context, d *inbox.Delivery) error {
//		return d.Commit(ctx, func(tx *sql.Tx) error {
//			_, err := tx.ExecContext(ctx, "INSERT INTO visits (session) VALUES (?)", d.Event.SessionID)
//			return err
//		})
//	})
//
// After a 200 the event is on disk: on one disk with package sqlite, and
// wherever your commit is with package postgres. It is handled at least once, or
// is among the dead letters; through Delivery.Commit its effect in the same
// database happens exactly once. Events of one session run one at a time, in the
// order in which they were stored.
package inbox
