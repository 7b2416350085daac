package inbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// newRecord returns the row for an event. It returns an error for an event that could not be
// restored from it.
func newRecord(e *heads.Event) (*engine.Record, error) {
	if e == nil {
		return nil, invalid("Append", "event", "is nil", "give what heads.ParseEvent returned")
	}
	if e.Raw.Len() == 0 {
		return nil, invalid("Append", "Raw", "is empty", "append events that were verified with heads.VerifySignature and read with heads.ParseEvent from the same bytes, or let Handler do both")
	}
	body := e.Raw.Bytes()
	parsed, err := heads.ParseEvent(body)
	if err != nil {
		return nil, invalid("Append", "Raw", "is not the body of an event", "append what heads.ParseEvent returned")
	}
	if parsed.Key() != e.Key() {
		return nil, invalid("Append", "Raw", "is the body of another event", "append what heads.ParseEvent returned")
	}
	key, session := sha256.Sum256([]byte(e.Key())), sessionOf(e.HeadID, e.SessionID)
	r := &engine.Record{
		Key:       key[:],
		Session:   session,
		HeadID:    append([]byte{}, e.HeadID...),
		SessionID: append([]byte{}, e.SessionID...),
		Type:      append([]byte{}, parsed.Type...),
		Body:      body,
	}
	r.Checksum = checksum(r)
	return r, nil
}

// sessionOf returns the key of a session: a hash of both ids, each preceded by its length, so that
// no two pairs collide.
func sessionOf(headID, sessionID string) []byte {
	sum := sha256.Sum256(appendField(appendField(nil, []byte(headID)), []byte(sessionID)))
	return sum[:]
}

func appendField(b, field []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(field))), field...)
}

// checksum returns the checksum of the whole event.
func checksum(r *engine.Record) []byte {
	var b []byte
	for _, field := range [][]byte{r.Key, r.Session, r.HeadID, r.SessionID, r.Type, r.Body} {
		b = appendField(b, field)
	}
	sum := sha256.Sum256(b)
	return sum[:16]
}

// eventOf returns the event of a record, or ErrDamaged if the record does not match its checksum.
func eventOf(r *engine.Record) (*heads.Event, error) {
	if !bytes.Equal(checksum(r), r.Checksum) {
		return nil, fmt.Errorf("%w: event %d is not what was stored", ErrDamaged, r.Sequence)
	}
	e, err := heads.ParseEvent(r.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: event %d can't be read", ErrDamaged, r.Sequence)
	}
	return e, nil
}

// shellOf returns an event with the type and ids of a record whose body is damaged.
func shellOf(r *engine.Record) *heads.Event {
	return &heads.Event{Type: heads.EventType(r.Type), HeadID: string(r.HeadID), SessionID: string(r.SessionID)}
}

func timeOf(micros int64) time.Time { return time.UnixMicro(micros) }

func micros(d time.Duration) int64 { return max(d, 0).Microseconds() }
