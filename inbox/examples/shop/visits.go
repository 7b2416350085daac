package main

import (
	"context"
	"database/sql"
	"errors"
	"net/url"

	heads "github.com/headsapi/heads-go"
)

// visits is a table in the file of the inbox, with a row for each handled event.
// db reads; add writes through the inbox.
type visits struct{ db *sql.DB }

// visit is an event that was handled.
type visit struct {
	Event string `json:"event"`
	At    string `json:"at"`
}

// openVisits opens the table, and creates it if it is not there.
func openVisits(ctx context.Context, file string) (*visits, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS visits (head TEXT, session TEXT, event TEXT, at TEXT);
		CREATE INDEX IF NOT EXISTS visits_session ON visits (session, head)`)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &visits{db}, nil
}

// add adds a row in the transaction that marks the event as handled.
func add(ctx context.Context, tx *sql.Tx, e *heads.Event, v visit) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO visits (head, session, event, at) VALUES (?, ?, ?, ?)", e.HeadID, e.SessionID, v.Event, v.At)
	return err
}

// of returns the handled events of a session, in order.
func (v *visits) of(ctx context.Context, e *heads.Event) (earlier []visit, err error) {
	rows, err := v.db.QueryContext(ctx, "SELECT event, at FROM visits WHERE session = ? AND head = ? ORDER BY rowid", e.SessionID, e.HeadID)
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
	err = v.db.QueryRowContext(ctx, "SELECT count(*), count(*) FILTER (WHERE event = ?) FROM visits", string(heads.EventEndConversation)).Scan(&events, &sessions)
	return events, sessions, err
}
