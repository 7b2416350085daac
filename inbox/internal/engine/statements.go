package engine

import (
	"fmt"
	"regexp"
	"strings"
)

// Stmt names a statement.
type Stmt int

// The statements that every backend knows.
const (
	Due            Stmt = iota // limit: session, 1 if claimed, its fence, the next fence; locked
	SpendFences                // n
	TakeSession                // session, fence, owner, lease
	ClaimEvent                 // session: its first waiting event, unless that is locked
	BeginEvent                 // sequence, fence, max attempts
	StealEvent                 // sequence, fence
	DropIdle                   // session, if it has no waiting event
	Postpone                   // session, wait: stays marked as claimed
	Next                       // earliest due time, now
	MarkHandled                // sequence, fence
	MarkDead                   // sequence, fence, error
	NoteFailure                // sequence, fence, error
	Look                       // sequence: state, fence
	LockSession                // session, fence
	FirstEvent                 // session
	DropSession                // session
	ReleaseSession             // session, wait
	RenewSession               // session, fence, owner, lease
	Uncount                    // sequence, fence
	DeadPage                   // after, from, to, 1 if of one head, head, 1 if of one session, session, limit
	ReplayPage                 // the same
	RedriveEvent               // sequence: session
	WakeSession                // session
	DeleteDead                 // sequence
	Count                      // waiting, retrying, dead, sessions, earliest received, running
	PruneBounds                // after, limit: last sequence, number, earliest received, now
	PruneEvents                // after, last, cutoff
	Touch                      // a write that changes nothing of interest
	Statements                 // their number
)

// eventColumns are the columns that ScanRecord reads.
const eventColumns = `e.sequence, e.key, e.session, e.head_id, e.session_id, e.type, e.body, e.checksum,
	e.attempts, e.fence, e.redriven, e.state, e.received, coalesce(e.finished, 0), coalesce(e.error, '')`

// ScanRecord reads the columns of an event.
func ScanRecord(scan func(...any) error, r *Record) error {
	return scan(&r.Sequence, &r.Key, &r.Session, &r.HeadID, &r.SessionID, &r.Type, &r.Body, &r.Checksum,
		&r.Attempts, &r.Fence, &r.Redriven, &r.State, &r.Received, &r.Finished, &r.Error)
}

// filter is the part of a query on events that Query describes.
const filter = `e.sequence > $1::bigint AND e.received >= $2::bigint AND e.received < $3::bigint
	AND ($4::bigint = 0 OR e.head_id = $5::bytea) AND ($6::bigint = 0 OR e.session_id = $7::bytea)`

// texts are written for PostgreSQL, with a cast on every parameter: a server
// behind a pooler that prepares nothing can't infer their types. {p} stands for
// the prefix of the tables, {now} for the database's time in microseconds.
var texts = [Statements]string{
	Due: `SELECT q.session, CASE WHEN q.owner IS NULL THEN 0 ELSE 1 END, q.fence, nextval('{p}fence')
		FROM (SELECT session, owner, fence FROM {p}sessions WHERE next_at <= {now} ORDER BY next_at LIMIT $1::bigint FOR UPDATE SKIP LOCKED) q`,
	SpendFences: ``, // the sequence has done it
	TakeSession: `UPDATE {p}sessions SET owner = $3::bytea, fence = $2::bigint, next_at = {now} + $4::bigint WHERE session = $1::bytea`,
	ClaimEvent: `SELECT ` + eventColumns + ` FROM {p}events e WHERE e.state = 0 AND e.sequence = (
		SELECT min(w.sequence) FROM {p}events w WHERE w.session = $1::bytea AND w.state = 0) FOR UPDATE OF e SKIP LOCKED`,
	BeginEvent: `UPDATE {p}events SET fence = $2::bigint, attempts = attempts + CASE WHEN attempts < $3::bigint THEN 1 ELSE 0 END
		WHERE sequence = $1::bigint`,
	StealEvent: `UPDATE {p}events SET fence = $2::bigint WHERE sequence = $1::bigint`,
	DropIdle: `DELETE FROM {p}sessions WHERE session = $1::bytea
		AND NOT EXISTS (SELECT 1 FROM {p}events w WHERE w.session = $1::bytea AND w.state = 0)`,
	Postpone: `UPDATE {p}sessions SET owner = '', next_at = {now} + $2::bigint WHERE session = $1::bytea`,
	Next:     `SELECT coalesce(min(next_at), 0), {now} FROM {p}sessions`,
	MarkHandled: `UPDATE {p}events SET state = 1, finished = {now}, error = NULL
		WHERE sequence = $1::bigint AND fence = $2::bigint AND state = 0`,
	MarkDead: `UPDATE {p}events SET state = 2, finished = {now}, error = $3::text
		WHERE sequence = $1::bigint AND fence = $2::bigint AND state = 0`,
	NoteFailure: `UPDATE {p}events SET error = $3::text WHERE sequence = $1::bigint AND fence = $2::bigint AND state = 0`,
	Look:        `UPDATE {p}events SET fence = fence WHERE sequence = $1::bigint RETURNING state, fence`,
	LockSession: `SELECT fence FROM {p}sessions WHERE session = $1::bytea AND fence = $2::bigint FOR UPDATE`,
	FirstEvent: `SELECT ` + eventColumns + ` FROM {p}events e WHERE e.session = $1::bytea AND e.state = 0
		ORDER BY e.sequence LIMIT 1`,
	DropSession:    `DELETE FROM {p}sessions WHERE session = $1::bytea`,
	ReleaseSession: `UPDATE {p}sessions SET owner = NULL, next_at = {now} + $2::bigint WHERE session = $1::bytea`,
	RenewSession: `UPDATE {p}sessions SET next_at = {now} + $4::bigint
		WHERE session = $1::bytea AND fence = $2::bigint AND owner = $3::bytea`,
	Uncount: `UPDATE {p}events SET attempts = attempts - 1
		WHERE sequence = $1::bigint AND fence = $2::bigint AND state = 0 AND attempts > 0`,
	DeadPage: `SELECT ` + eventColumns + ` FROM {p}events e WHERE e.state = 2 AND ` + filter + `
		ORDER BY e.sequence LIMIT $8::bigint`,
	ReplayPage: `SELECT ` + eventColumns + ` FROM {p}events e WHERE e.state <> 3 AND ` + filter + `
		ORDER BY e.sequence LIMIT $8::bigint`,
	RedriveEvent: `UPDATE {p}events SET state = 0, attempts = 0, redriven = 1, finished = NULL, error = NULL
		WHERE sequence = $1::bigint AND state = 2 RETURNING session`,
	WakeSession: `INSERT INTO {p}sessions (session, fence, next_at) VALUES ($1::bytea, 0, {now})
		ON CONFLICT (session) DO UPDATE SET fence = {p}sessions.fence`,
	DeleteDead: `UPDATE {p}events SET state = 3, body = '', error = NULL WHERE sequence = $1::bigint AND state = 2`,
	Count: `SELECT
		(SELECT count(*) FROM {p}events WHERE state = 0),
		(SELECT count(*) FROM {p}events w WHERE w.state = 0 AND w.attempts > 0 AND NOT EXISTS (
			SELECT 1 FROM {p}sessions s WHERE s.session = w.session AND s.owner IS NOT NULL AND s.next_at > {now} AND s.fence = w.fence)),
		(SELECT count(*) FROM {p}events WHERE state = 2),
		(SELECT count(DISTINCT session) FROM {p}events WHERE state = 0),
		(SELECT coalesce(min(received), 0) FROM {p}events WHERE state = 0),
		(SELECT count(*) FROM {p}sessions WHERE owner IS NOT NULL AND next_at > {now})`,
	PruneBounds: `SELECT coalesce(max(sequence), 0), count(*), coalesce(min(received), 0), {now}
		FROM (SELECT sequence, received FROM {p}events WHERE sequence > $1::bigint ORDER BY sequence LIMIT $2::bigint) q`,
	PruneEvents: `DELETE FROM {p}events WHERE sequence > $1::bigint AND sequence <= $2::bigint AND received < $3::bigint AND state IN (1, 3)`,
	Touch:       `UPDATE {p}meta SET value = {now} WHERE name = 'touched'`,
}

var prefixForm = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

// CheckPrefix returns an error for a prefix that can't begin a plain SQL name.
func CheckPrefix(prefix string) error {
	if !prefixForm.MatchString(prefix) {
		return fmt.Errorf("%q: want up to 40 lower-case letters, digits and underscores, not beginning with a digit", prefix)
	}
	return nil
}

// Texts returns the statements of a dialect, by name: overrides where it has
// another text, and every text through edit.
func Texts(prefix, now string, overrides map[Stmt]string, edit func(string) string) []string {
	all := make([]string, Statements)
	for s, text := range texts {
		if other, ok := overrides[Stmt(s)]; ok {
			text = other
		}
		all[s] = edit(Expand(text, prefix, now))
	}
	return all
}

// Expand sets the prefix and the time in a text.
func Expand(text, prefix, now string) string {
	return strings.NewReplacer("{p}", prefix, "{now}", now).Replace(text)
}
