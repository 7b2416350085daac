// Package inbox stores webhook events before it answers their deliveries, and then calls a function
// for each event. An event whose delivery was answered with 200 is never lost, and an effect in the
// same database happens exactly once.
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
// After a 200, the event is on disk: with package sqlite, synced to one disk; with package
// postgres, as durable as your synchronous_commit. The event is handled at least once or goes to
// the dead letters. With Delivery.Commit, its effect in the same database happens exactly once.
// Events of one session are handled one at a time, in the order in which they were stored.
package inbox
