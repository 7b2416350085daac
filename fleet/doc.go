// Package fleet brings many heads to a wanted state: fields, voice, mode,
// delivery of events, webhooks and tools.
//
// A Spec says what is wanted of one head; what it doesn't mention is left as it
// is. Plan reads the heads and reports what Apply would change. Apply changes
// it, several heads at a time, and may be run again at any time: the second run
// changes nothing and only reads. A failure of one head never stops another.
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
// When a head begins to stream, its access URL changes and nobody can read the
// old one any more. The Journal has the old one on disk before the switch is
// sent, so that Report.Moves is complete even if the process was killed.
//
// Apply returns an error and no report if a spec is faulty; nothing was sent
// then. It returns an error and a report if the run was cut short. Failures of
// heads are no error: they are in the report, each with what to do.
package fleet
