package heads

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/headsapi/heads-go/internal/rawjson"
)

// SessionMetadata says in which conversation a tool was called. A function
// given to AddTool reads it with SessionFromContext.
//
// The service promises none of the fields: what it did not send is empty, and
// what has no field here is in Raw. None of it is proof of who the user is.
type SessionMetadata struct {
	SessionID, UserID, Username string
	HeadID, OrgID               string
	PublicHeadID, PublicOrgID   string
	Timestamp                   Time
	Raw                         json.RawMessage // the whole session_metadata as it was sent
}

// String returns the session id alone, since the rest may name a person.
func (m SessionMetadata) String() string {
	return "heads.SessionMetadata(session " + strconv.Quote(m.SessionID) + ")"
}

// Format writes the session id alone, whatever the verb.
func (m SessionMetadata) Format(f fmt.State, _ rune) { writeText(f, m.String()) }

// LogValue returns the session id alone.
func (m SessionMetadata) LogValue() slog.Value {
	return slog.GroupValue(slog.String("session_id", m.SessionID))
}

type sessionKey struct{}

// SessionFromContext returns the session in which a tool was called. It reports
// false when the call carried no session_metadata, and outside a tool call.
func SessionFromContext(ctx context.Context) (SessionMetadata, bool) {
	raw, ok := ctx.Value(sessionKey{}).(json.RawMessage)
	if !ok {
		return SessionMetadata{}, false
	}
	return parseSession(raw), true
}

// sessionIDFrom returns the session's id alone, at the price of no more than that.
func sessionIDFrom(ctx context.Context) (id string) {
	raw, _ := ctx.Value(sessionKey{}).(json.RawMessage)
	if member, _ := rawjson.Value(raw, "session_id"); !isNull(member) {
		id, _ = scalarText(member)
	}
	return id
}

// withSession returns ctx with the session in raw, or ctx itself when raw holds
// none. It is parsed when asked for, as most functions don't ask.
func withSession(ctx context.Context, raw json.RawMessage) context.Context {
	if isNull(raw) {
		return ctx
	}
	return context.WithValue(ctx, sessionKey{}, raw)
}

// parseSession never fails: a session that can't be read is no reason to leave
// the user without an answer.
func parseSession(raw json.RawMessage) SessionMetadata {
	m := SessionMetadata{Raw: raw}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return m
	}
	for name, field := range map[string]*string{
		"session_id":     &m.SessionID,
		"user_id":        &m.UserID,
		"username":       &m.Username,
		"head_id":        &m.HeadID,
		"org_id":         &m.OrgID,
		"public_head_id": &m.PublicHeadID,
		"public_org_id":  &m.PublicOrgID,
	} {
		if member := members[name]; !isNull(member) {
			*field, _ = scalarText(member)
		}
	}
	if stamp, ok := members["timestamp"]; ok {
		_ = m.Timestamp.UnmarshalJSON(stamp)
	}
	return m
}
