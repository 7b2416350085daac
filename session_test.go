package heads_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go"
)

// sessionOf returns the session that a tool called with body sees.
func sessionOf(t *testing.T, body string) (session heads.SessionMetadata, ok bool) {
	t.Helper()
	h := newToolHandler(t)
	answerWith(t, h, func(ctx context.Context) (string, error) {
		session, ok = heads.SessionFromContext(ctx)
		return "done", nil
	})
	require.Equal(t, "done", toolReply(t, postTool(h, "/answer", body)))
	return session, ok
}

func TestSessionIsTypedWhereItIsKnown(t *testing.T) {
	body := toolDocument(t, "call_flat.json")
	session, ok := sessionOf(t, body)
	require.True(t, ok)
	assert.Equal(t, "5c0f1f6e-6f53-4a35-9d0c-3a8f2f1f7a10", session.SessionID)
	assert.Equal(t, "user-77", session.UserID)
	assert.Equal(t, "grace", session.Username)
	assert.Equal(t, "2a9c6d0e-44cf-4f0a-8f58-0f4d0b1f2c3d", session.HeadID)
	assert.Equal(t, "9f1c2b3a-1d2e-4f5a-8b7c-6d5e4f3a2b1c", session.OrgID)
	assert.Equal(t, "li-28379", session.PublicHeadID)
	assert.Equal(t, "MyOrg-1234", session.PublicOrgID)
	assert.Equal(t, time.Date(2026, 8, 31, 6, 56, 30, 0, time.UTC), session.Timestamp.Time)
	assert.Equal(t, "2026-08-31 06:56:30", session.Timestamp.Text)

	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(body), &members))
	assert.Equal(t, string(members["session_metadata"]), string(session.Raw.Bytes()), "the rest is there as it was sent")
}

// Names are exact, and what is given twice is taken for neither.
func TestSessionWithConfusedNames(t *testing.T) {
	session, ok := sessionOf(t, `{"session_metadata":{"SESSION_ID":"a","session_id":"b","User_Id":"c","head_id":"d","head\u005fid":"e","timestamp":"x","timestamp":"y"}}`)
	require.True(t, ok)
	assert.Equal(t, "b", session.SessionID)
	assert.Empty(t, session.UserID)
	assert.Empty(t, session.HeadID)
	assert.Empty(t, session.Timestamp.Text)
	session, ok = sessionOf(t, `{"session_metadata":{"session_id":"a","session_id":"b"}}`)
	assert.True(t, ok)
	assert.Empty(t, session.SessionID)
	_, ok = sessionOf(t, `{"session_metadata":{"session_id":"a"},"session_metadata":{"session_id":"b"}}`)
	assert.False(t, ok)
	_, ok = sessionOf(t, `{"SESSION_METADATA":{"session_id":"a"}}`)
	assert.False(t, ok)
}

func TestSessionInAnyShapeIsNoReasonToFail(t *testing.T) {
	for _, row := range []struct {
		name, metadata, sessionID string
		ok                        bool
	}{
		{"null", "null", "", false},
		{"text", `"s-1"`, "", true},
		{"list", `["s-1"]`, "", true},
		{"empty", `{}`, "", true},
		{"null id", `{"session_id":null}`, "", true},
		{"numeric id", `{"session_id":17}`, "17", true},
		{"object as id", `{"session_id":{"id":1}}`, "", true},
		{"numeric timestamp", `{"session_id":"s-1","timestamp":1756623390}`, "s-1", true},
		{"object as timestamp", `{"session_id":"s-1","timestamp":{}}`, "s-1", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			session, ok := sessionOf(t, `{"session_metadata":`+row.metadata+`}`)
			assert.Equal(t, row.ok, ok)
			assert.Equal(t, row.sessionID, session.SessionID)
			assert.Zero(t, session.Timestamp.Time)
			if row.ok {
				assert.Equal(t, row.metadata, string(session.Raw.Bytes()))
			}
		})
	}
}

func TestNoSessionWithoutMetadata(t *testing.T) {
	_, ok := sessionOf(t, `{}`)
	assert.False(t, ok)
	_, ok = heads.SessionFromContext(t.Context())
	assert.False(t, ok)
}

func TestSessionComesWithNestedArguments(t *testing.T) {
	h := newToolHandler(t)
	var id string
	require.NoError(t, heads.AddTool(h, "get_weather", "Weather", func(ctx context.Context, _ weatherArguments) (string, error) {
		session, _ := heads.SessionFromContext(ctx)
		id = session.SessionID
		return "done", nil
	}))
	assert.Equal(t, "done", toolReply(t, postTool(h, "/get_weather", toolDocument(t, "call_parameters.json"))))
	assert.Equal(t, "s-2", id)
}
