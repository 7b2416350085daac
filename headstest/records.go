package headstest

import heads "github.com/headsapi/heads-go"

// visual is a head visual. Its mode is kept outside the document, since a test may hide or
// rename it there.
type visual struct {
	mode  heads.VisualMode
	shown document
}

// webhook is a registration: the URL to which events of a head are delivered.
type webhook struct {
	id                            int64
	createdAt, updatedAt          string
	orgID, headID, url, sharedKey string
	events                        map[heads.EventType]bool
	early                         bool // made, or moved to its head, while delivery was disabled
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

// eventFlags are the flags of a webhook and the events that they turn on.
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
