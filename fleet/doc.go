// Package fleet applies a declared state to many heads: fields, voice, mode, delivery of events,
// webhooks and tools.
//
// A Spec declares the state of one head. Fields that it does not mention are not changed. Plan
// reads the heads and reports what Apply would change. Apply changes several heads at a time. It is
// idempotent: a second run only reads. A failure of one head does not stop the others.
//
//	journal, err := fleet.OpenJournal("heads.journal")
//	if err != nil {
//		return err
//	}
//	defer journal.Close()
//	report, err := fleet.Apply(ctx, client, specs, fleet.Options{Journal: journal})
//	if report == nil {
//		return err // nothing was sent
//	}
//
// When a head is switched to streaming, its access URL changes, and the service no longer returns
// the old one. The Journal stores the old one on disk before the switch is sent, so Report.Moves is
// complete even if the process is killed.
//
// If a spec is invalid, Apply sends nothing and returns an error without a report. If the run is
// cut short, Apply returns an error and a report. Failures of single heads are not errors of Apply.
// They are in the report, each with a remedy.
package fleet
