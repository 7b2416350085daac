package main

import (
	"context"
	"database/sql"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
)

// visits is a table in the database of the inbox, with a row for each handled event.
// db reads; add writes through the inbox.
type visits struct{ db *sql.DB }

// visit is an event that was handled.
type visit struct {
	Event string `json:"event"`
	At    string `json:"at"`
}

// visitTables creates the table, in which id is the order of the events.
var visitTables = []string{
	"CREATE TABLE IF NOT EXISTS visits (id BIGINT PRIMARY KEY, head TEXT, session TEXT, event TEXT, at TEXT)",
	"CREATE INDEX IF NOT EXISTS visits_session ON visits (session, head)",
}

// add adds a row in the transaction that marks the event as handled.
func add(ctx context.Context, tx *sql.Tx, d *inbox.Delivery, v visit) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO visits (id, head, session, event, at) VALUES ($1, $2, $3, $4, $5)",
		d.Sequence, d.Event.HeadID, d.Event.SessionID, v.Event, v.At)
	return err
}

// of returns the handled events of a session, in order.
func (v *visits) of(ctx context.Context, e *heads.Event) (earlier []visit, err error) {
	rows, err := v.db.QueryContext(ctx, "SELECT event, at FROM visits WHERE session = $1 AND head = $2 ORDER BY id", e.SessionID, e.HeadID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var one visit
		if err := rows.Scan(&one.Event, &one.At); err != nil {
			return nil, err
		}
		earlier = append(earlier, one)
	}
	return earlier, rows.Err()
}

// count returns how many events were handled, and how many of them ended a session.
func (v *visits) count(ctx context.Context) (events, sessions int64, err error) {
	err = v.db.QueryRowContext(ctx, "SELECT count(*), count(*) FILTER (WHERE event = $1) FROM visits", string(heads.EventEndConversation)).Scan(&events, &sessions)
	return events, sessions, err
}
