package headstest

import heads "github.com/headsapi/heads-go"

// visual has its mode beside its document, since a test may hide or rename the
// mode.
type visual struct {
	mode  heads.VisualMode
	shown document
}

// webhook is one registration.
type webhook struct {
	id                            int64
	createdAt, updatedAt          string
	orgID, headID, url, sharedKey string
	events                        map[heads.EventType]bool
	early                         bool // made, or moved to its head, while delivery was off
}

func (w *webhook) document() document {
	d := newDocument(map[string]any{
		"id": w.id, "createdAt": w.createdAt, "updatedAt": w.updatedAt,
		"orgId": w.orgID, "headId": w.headID, "webhookUrl": w.url, "sharedKey": w.sharedKey,
	})
	for _, f := range eventFlags {
		d.set(f.name, w.events[f.event])
	}
	return d
}

// eventFlags are the flags of a registration and the events that they turn on.
var eventFlags = []eventFlag{
	{"startConversation", heads.EventStartConversation},
	{"endConversation", heads.EventEndConversation},
	{"timeoutConversation", heads.EventTimeoutConversation},
	{"inactivityWarning", heads.EventInactivityWarning},
}

type eventFlag struct {
	name  string
	event heads.EventType
}
