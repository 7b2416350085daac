package engine

import (
	"fmt"
	"regexp"
	"strings"
)

// Stmt names a statement.
type Stmt int

// The statements of every backend. Each comment lists the arguments and, after a colon, the columns
// that are returned.
const (
	Due             Stmt = iota // low, limit: session, 1 if claimed, its fence, the next fence; locked
	Low                         // low: the earliest next_at that is due, or now
	SpendFences                 // n
	TakeSession                 // session, fence, owner, lease
	ClaimEvent                  // session: its first waiting event, unless that is locked
	BeginEvent                  // sequence, fence, max attempts
	StealEvent                  // sequence, fence
	DropIdle                    // session, if it has no waiting event
	Postpone                    // session, wait: stays marked as claimed
	Next                        // low, horizon: the earliest next_at until then or 0, now
	MarkHandled                 // sequence, fence
	MarkDead                    // sequence, fence, error
	NoteFailure                 // sequence, fence, error
	EventState                  // sequence: state, fence
	LockSession                 // session, fence
	FirstEvent                  // session, after: the first waiting event after that, or else the first
	DropSession                 // session
	ReleaseSession              // session, wait
	RenewSession                // session, fence, owner, lease
	Uncount                     // sequence, fence
	DeadPage                    // after, last, from, to, 1 if of one head, head, 1 if of one session, session, limit
	ReplayPage                  // the same
	DeadOfSession               // the same, and the session: head and session are those of one
	ReplayOfSession             // the same
	RedriveEvent                // sequence: session
	WakeSession                 // session
	DeleteDead                  // sequence
	CountWaiting                // limit
	CountDead                   // limit
	CountSessions               // limit
	CountClaims                 // limit: claimed, waiting for another attempt
	OldestWaiting               // sequence, received
	Sample                      // first, last, number: how many of so many random sequences wait
	Bounds                      // first sequence, last sequence
	SequenceFrom                // sequence: the first event from there on, its time
	ListAll                     // before, first, limit, head, session: light rows, the latest first
	ListWaiting                 // the same
	ListDead                    // the same
	ListOfSession               // the same, and the key of the session
	DeadGroups                  // dead events, groups: error, number, heads, types in hex, last finished, last sequence
	OneEvent                    // sequence
	FencesHandedOut             // the last one; the highest of the latest events
	PruneBounds                 // after, limit, cutoff: last sequence, number, earliest received, number to delete
	Now                         // the database's time
	PruneEvents                 // after, last, cutoff
	Touch                       // a write that changes nothing of interest
	Statements                  // their number
)

// eventColumns are the columns that ScanRecord reads.
const eventColumns = `e.sequence, e.key, e.session, e.head_id, e.session_id, e.type, e.body, e.checksum,
	e.attempts, e.fence, e.redriven, e.state, e.received, coalesce(e.finished, 0), coalesce(e.error, '')`

// ScanRecord reads the columns of an event.
func ScanRecord(scan func(...any) error, r *Record) error {
	return scan(&r.Sequence, &r.Key, &r.Session, &r.HeadID, &r.SessionID, &r.Type, &r.Body, &r.Checksum,
		&r.Attempts, &r.Fence, &r.Redriven, &r.State, &r.Received, &r.Finished, &r.Error)
}

// lightColumns are the columns that ScanLight reads. They exclude key and body, and cut texts, so
// that a page of events has a bounded size.
const lightColumns = `e.sequence, substr(e.head_id, 1, 1024), substr(e.session_id, 1, 1024), substr(e.type, 1, 1024), e.attempts, e.redriven, e.state,
	e.received, coalesce(e.finished, 0), substr(coalesce(e.error, ''), 1, 1024),
	CASE WHEN e.head_id = $4::bytea THEN 1 ELSE 0 END, CASE WHEN e.session_id = $5::bytea THEN 1 ELSE 0 END`

// Light is an event without its key and body.
type Light struct {
	Record
	OfHead, OfSession int64 // 1 if the uncut id is the one in the arguments
}

// ScanLight reads the columns of a light event.
func ScanLight(scan func(...any) error, r *Light) error {
	return scan(&r.Sequence, &r.HeadID, &r.SessionID, &r.Type, &r.Attempts, &r.Redriven, &r.State, &r.Received, &r.Finished, &r.Error,
		&r.OfHead, &r.OfSession)
}

// filter has the conditions of a Query, except those on sequences.
const filter = ` AND e.received >= $3::bigint AND e.received < $4::bigint AND ($5::bigint = 0 OR e.head_id = $6::bytea) AND ($7::bigint = 0 OR e.session_id = $8::bytea)`

// between limits a page by its sequences.
const between = `e.sequence > $1::bigint AND e.sequence <= $2::bigint`

// story is the expression of the index events_story. It is an expression so that the planner does
// not choose the index for claims. Statements that use it also write the sequence as an expression,
// or the planner would read the primary key for order and range.
const (
	story        = `(e.session || ''::bytea)`
	storyBetween = `e.sequence + 0 > $1::bigint AND e.sequence + 0 <= $2::bigint`
)

// waiting finds the first waiting event of a session in events_waiting. A plain "session = $1 ORDER
// BY sequence LIMIT 1" reads the primary key from its start if the planner assumes a small table.
const waiting = `SELECT w.sequence FROM {p}events w WHERE w.session >= $1::bytea AND w.session <= $1::bytea AND w.state = 0`

// list selects a page of events without bodies, the latest first.
const list = `SELECT ` + lightColumns + ` FROM {p}events e WHERE e.sequence < $1::bigint AND e.sequence >= $2::bigint AND `

const listEnd = ` ORDER BY e.sequence DESC LIMIT $3::bigint`

// texts are in PostgreSQL's dialect. Every parameter has a cast, since without prepared statements,
// as behind a pooler, the server can't infer types. {p} is the prefix of the tables, {now} the
// database's time in microseconds.
var texts = [Statements]string{
	Due: `SELECT q.session, CASE WHEN q.owner IS NULL THEN 0 ELSE 1 END, q.fence, nextval('{p}fence')
		FROM (SELECT session, owner, fence FROM {p}sessions WHERE next_at >= $1::bigint AND next_at <= {now}
			ORDER BY next_at LIMIT $2::bigint FOR UPDATE SKIP LOCKED) q`,
	Low:         `SELECT coalesce((SELECT next_at FROM {p}sessions WHERE next_at >= $1::bigint AND next_at <= {now} ORDER BY next_at LIMIT 1), {now})`,
	SpendFences: ``, // not needed: the fences come from an SQL sequence
	TakeSession: `UPDATE {p}sessions SET owner = $3::bytea, fence = $2::bigint, next_at = {now} + $4::bigint WHERE session = $1::bytea`,
	ClaimEvent: `SELECT ` + eventColumns + ` FROM {p}events e WHERE e.state = 0
		AND e.sequence = (` + waiting + ` ORDER BY w.session, w.sequence LIMIT 1) FOR UPDATE OF e SKIP LOCKED`,
	BeginEvent: `UPDATE {p}events SET fence = $2::bigint, attempts = attempts + CASE WHEN attempts < $3::bigint THEN 1 ELSE 0 END
		WHERE sequence = $1::bigint`,
	StealEvent: `UPDATE {p}events SET fence = $2::bigint WHERE sequence = $1::bigint`,
	DropIdle: `DELETE FROM {p}sessions WHERE session = $1::bytea
		AND NOT EXISTS (` + waiting + `)`,
	Postpone: `UPDATE {p}sessions SET owner = '', next_at = {now} + $2::bigint WHERE session = $1::bytea`,
	Next: `SELECT coalesce((SELECT next_at FROM {p}sessions WHERE next_at >= $1::bigint AND next_at <= {now} + $2::bigint
		ORDER BY next_at LIMIT 1), 0), {now}`,
	MarkHandled: `UPDATE {p}events SET state = 1, finished = {now}, error = NULL
		WHERE sequence = $1::bigint AND fence = $2::bigint AND state = 0`,
	MarkDead: `UPDATE {p}events SET state = 2, finished = {now}, error = $3::text
		WHERE sequence = $1::bigint AND fence = $2::bigint AND state = 0`,
	NoteFailure: `UPDATE {p}events SET error = $3::text WHERE sequence = $1::bigint AND fence = $2::bigint AND state = 0`,
	EventState:  `UPDATE {p}events SET fence = fence WHERE sequence = $1::bigint RETURNING state, fence`,
	LockSession: `SELECT fence FROM {p}sessions WHERE session = $1::bytea AND fence = $2::bigint FOR UPDATE`,
	FirstEvent: `SELECT ` + eventColumns + ` FROM {p}events e WHERE e.state = 0 AND e.sequence = coalesce(
		(` + waiting + ` AND w.sequence > $2::bigint ORDER BY w.session, w.sequence LIMIT 1),
		(` + waiting + ` ORDER BY w.session, w.sequence LIMIT 1))`,
	DropSession:    `DELETE FROM {p}sessions WHERE session = $1::bytea`,
	ReleaseSession: `UPDATE {p}sessions SET owner = NULL, next_at = {now} + $2::bigint WHERE session = $1::bytea`,
	RenewSession: `UPDATE {p}sessions SET next_at = {now} + $4::bigint
		WHERE session = $1::bytea AND fence = $2::bigint AND owner = $3::bytea`,
	Uncount: `UPDATE {p}events SET attempts = attempts - 1
		WHERE sequence = $1::bigint AND fence = $2::bigint AND state = 0 AND attempts > 0`,
	DeadPage: `SELECT ` + eventColumns + ` FROM {p}events e WHERE e.state = 2 AND ` + between + filter + `
		ORDER BY e.sequence LIMIT $9::bigint`,
	ReplayPage: `SELECT ` + eventColumns + ` FROM {p}events e WHERE e.state <> 3 AND ` + between + filter + `
		ORDER BY e.sequence LIMIT $9::bigint`,
	DeadOfSession: `SELECT ` + eventColumns + ` FROM {p}events e WHERE ` + story + ` = $10::bytea AND e.state + 0 = 2 AND ` + storyBetween + filter + `
		ORDER BY e.sequence + 0 LIMIT $9::bigint`,
	ReplayOfSession: `SELECT ` + eventColumns + ` FROM {p}events e WHERE ` + story + ` = $10::bytea AND e.state <> 3 AND ` + storyBetween + filter + `
		ORDER BY e.sequence + 0 LIMIT $9::bigint`,
	RedriveEvent: `UPDATE {p}events SET state = 0, attempts = 0, redriven = 1, finished = NULL, error = NULL
		WHERE sequence = $1::bigint AND state = 2 RETURNING session`,
	WakeSession: `INSERT INTO {p}sessions (session, fence, next_at) VALUES ($1::bytea, 0, {now})
		ON CONFLICT (session) DO UPDATE SET fence = {p}sessions.fence WHERE false`,
	DeleteDead:    `UPDATE {p}events SET state = 3, body = '', error = NULL WHERE sequence = $1::bigint AND state = 2`,
	CountWaiting:  `SELECT count(*) FROM (SELECT 1 FROM {p}events e WHERE e.state + 0 = 0 ORDER BY e.sequence LIMIT $1::bigint) q`,
	CountDead:     `SELECT count(*) FROM (SELECT 1 FROM {p}events e WHERE e.state = 2 ORDER BY e.sequence LIMIT $1::bigint) q`,
	CountSessions: `SELECT count(*) FROM (SELECT 1 FROM {p}sessions LIMIT $1::bigint) q`,
	CountClaims: `SELECT coalesce(sum(CASE WHEN q.owner IS NULL THEN 0 ELSE 1 END), 0)::bigint, coalesce(sum(CASE WHEN q.owner IS NULL THEN 1 ELSE 0 END), 0)::bigint
		FROM (SELECT owner FROM {p}sessions WHERE next_at > {now} ORDER BY next_at LIMIT $1::bigint) q`,
	OldestWaiting: `SELECT e.sequence, e.received FROM {p}events e WHERE e.state + 0 = 0 ORDER BY e.sequence LIMIT 1`,
	Sample: `SELECT count(*) FROM (SELECT (SELECT e.state FROM {p}events e WHERE e.sequence = p.at) AS state
		FROM (SELECT $1::bigint + floor(random() * ($2::bigint - $1::bigint + 1))::bigint AS at FROM generate_series(1, $3::bigint)) p) q WHERE q.state = 0`,
	Bounds: `SELECT coalesce((SELECT e.sequence FROM {p}events e ORDER BY e.sequence LIMIT 1), 0),
		coalesce((SELECT e.sequence FROM {p}events e ORDER BY e.sequence DESC LIMIT 1), 0)`,
	SequenceFrom: `SELECT e.sequence, e.received FROM {p}events e WHERE e.sequence >= $1::bigint ORDER BY e.sequence LIMIT 1`,
	ListAll:      list + `true` + listEnd,
	ListWaiting:  list + `e.state + 0 = 0` + listEnd,
	ListDead:     list + `e.state = 2` + listEnd,
	ListOfSession: `SELECT ` + lightColumns + ` FROM {p}events e WHERE ` + story + ` = $6::bytea
		AND e.sequence + 0 < $1::bigint AND e.sequence + 0 >= $2::bigint ORDER BY e.sequence + 0 DESC LIMIT $3::bigint`,
	DeadGroups: `SELECT q.error, count(*), count(DISTINCT q.head_id), string_agg(DISTINCT q.type, ','), max(q.finished), max(q.sequence)
		FROM (SELECT substr(coalesce(e.error, ''), 1, 1024) AS error, substr(e.head_id, 1, 1024) AS head_id, encode(substr(e.type, 1, 64), 'hex') AS type,
				coalesce(e.finished, 0) AS finished, e.sequence
			FROM {p}events e WHERE e.state = 2 ORDER BY e.sequence DESC LIMIT $1::bigint) q
		GROUP BY q.error ORDER BY count(*) DESC, max(q.sequence) DESC LIMIT $2::bigint`,
	OneEvent: `SELECT ` + eventColumns + ` FROM {p}events e WHERE e.sequence = $1::bigint`,
	FencesHandedOut: `SELECT (SELECT last_value FROM {p}fence),
		coalesce((SELECT max(q.fence) FROM (SELECT e.fence FROM {p}events e ORDER BY e.sequence DESC LIMIT 1000) q), 0)`,
	PruneBounds: `SELECT coalesce(max(sequence), 0), count(*), coalesce(min(received), 0),
			coalesce(sum(CASE WHEN received < $3::bigint AND state IN (1, 3) THEN 1 ELSE 0 END), 0)::bigint
		FROM (SELECT sequence, received, state FROM {p}events WHERE sequence > $1::bigint ORDER BY sequence LIMIT $2::bigint) q`,
	Now:         `SELECT {now}`,
	PruneEvents: `DELETE FROM {p}events WHERE sequence > $1::bigint AND sequence <= $2::bigint AND received < $3::bigint AND state IN (1, 3)`,
	Touch:       `UPDATE {p}meta SET value = {now} WHERE name = 'touched'`,
}

var prefixForm = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

// CheckPrefix returns an error for a prefix that is not the start of a plain SQL name.
func CheckPrefix(prefix string) error {
	if !prefixForm.MatchString(prefix) {
		return fmt.Errorf("%q: want up to 40 lower-case letters, digits and underscores, not beginning with a digit", prefix)
	}
	return nil
}

// Texts returns the statements of a dialect, indexed by Stmt. overrides replaces single statements;
// edit is applied to every text.
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

// Expand replaces {p} and {now} in a text.
func Expand(text, prefix, now string) string {
	return strings.NewReplacer("{p}", prefix, "{now}", now).Replace(text)
}
