// Package inbox stores webhook events before they are answered and then calls a
// function for each. No event that was answered with 200 is lost, and an effect in the
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
// After a 200, the event is on disk: with package sqlite on one disk, with package
// postgres as durable as your synchronous_commit. The event is then handled at least
// once, or it becomes a dead letter. With Delivery.Commit, its effect in the same
// database happens exactly once. Events of one session are handled one at a time, in
// the order in which they were stored.
package inbox
