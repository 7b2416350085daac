package heads

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/headsapi/heads-go/internal/rawjson"
	"github.com/headsapi/heads-go/internal/transport"
)

// ConversationSettingsService reads and changes the conversation settings of
// heads, including their tools.
//
// The service replaces the settings whole. So all methods except Replace read,
// change and write back, and keep unknown keys byte for byte. One client runs one
// such call of a head at a time, so none undoes another. If another program
// writes between the read and the write, its change is overwritten.
type ConversationSettingsService struct{ service }

// errNoSettings prevents that settings which the head does not show are written
// back.
var errNoSettings error = answerFault("the head holds no conversationSettings, so writing them back could erase what it has")

var opSettingsReplace = transport.NewOperation("ConversationSettings.Replace", http.MethodPut, "/head/{headId}/conversation-settings")

// Get reads the conversation settings from the head. If the settings are null,
// the result is empty. If the head does not show its settings, the result is
// empty too, but Replace refuses it, since it could erase what the head has.
//
// GET /head/{id}.
func (s *ConversationSettingsService) Get(ctx context.Context, headID string) (*ConversationSettings, error) {
	if err := s.core.check(ctx, "ConversationSettings.Get"); err != nil {
		return nil, err
	}
	head, err := (&HeadsService{s.service}).Get(ctx, headID)
	if err != nil {
		return nil, err
	}
	return head.settings(), nil
}

// Replace replaces all conversation settings of a head with cs. Everything that
// is not in cs is lost. To change something, use Modify.
//
// PUT /head/{headId}/conversation-settings. Replace refuses tools that Tool.Validate refuses (but
// nothing that was read and is unchanged), two tools of one name, settings from a head that did not
// show them, and "[redacted]" or the length of a Raw in place of a value. It returns all faults
// together.
func (s *ConversationSettingsService) Replace(ctx context.Context, headID string, cs *ConversationSettings) error {
	faults := faultList{}
	faults.add(checkHeadID(opSettingsReplace.Name, headID))
	if cs == nil {
		faults.add(invalid(opSettingsReplace.Name, "settings", "are nil", "give empty ones to remove all tools and settings"))
	} else {
		if cs.missing {
			faults.add(invalid(opSettingsReplace.Name, "settings", "come from a head that does not show its conversationSettings, so sending them could erase what the head has", "start from empty settings to do so"))
		}
		faults.add(validateTools(opSettingsReplace.Name, cs.Tools, cs.Tools))
		faults.add(cs.checkExtras(opSettingsReplace.Name, nil))
	}
	if err := faults.join(); err != nil {
		return err
	}
	_, err := s.put(ctx, headID, cs)
	return err
}

// Modify reads the conversation settings of a head, calls change with them and
// writes them back whole. It returns them as they were written. If nothing
// changed, nothing is sent.
//
// GET /head/{id}, PUT /head/{headId}/conversation-settings. If the head does not
// show its settings, not even as null, Modify returns a DecodeError, since
// writing them back could erase what the head has. If change adds a tool to a
// head that is not in operation mode oc, Modify returns an InvalidError, since
// the head could never call it. An error of change is returned as it is, and
// nothing is sent.
//
// If the answer to the write has an unknown shape, Modify reads the head again.
// It returns an error unless the head shows the change.
//
// change must not change settings of the same head through the same client: it
// would wait for itself until the context ends.
func (s *ConversationSettingsService) Modify(ctx context.Context, headID string, change func(*ConversationSettings) error) (*ConversationSettings, error) {
	const operation = "ConversationSettings.Modify"
	faults := faultList{}
	faults.add(checkHeadID(operation, headID))
	if change == nil {
		faults.add(invalid(operation, "change", "is nil", "give a function that changes the settings"))
	}
	if err := faults.join(); err != nil {
		return nil, err
	}
	return s.modify(ctx, operation, headID, change)
}

// SetTools replaces all tools of a head. Without tools, all are removed. Unknown
// keys of the settings are kept. So are the unknown keys of tools and parameters
// that have the name of an old one.
//
// GET /head/{id}, PUT /head/{headId}/conversation-settings. SetTools refuses the
// same as Modify and Tool.Validate.
func (s *ConversationSettingsService) SetTools(ctx context.Context, headID string, tools ...Tool) (*ConversationSettings, error) {
	const operation = "ConversationSettings.SetTools"
	faults := faultList{}
	faults.add(checkHeadID(operation, headID))
	faults.add(validateTools(operation, tools, built(tools)))
	if err := faults.join(); err != nil {
		return nil, err
	}
	return s.modify(ctx, operation, headID, func(cs *ConversationSettings) error {
		replaced := make([]Tool, len(tools))
		for i, t := range tools {
			replaced[i] = t.inherit(cs.tool(t.Name))
		}
		cs.Tools = replaced
		return nil
	})
}

// PutTool adds a tool to a head, or replaces the one of the same name. All other
// tools are kept, even those that Tool.Validate would refuse.
//
// GET /head/{id}, PUT /head/{headId}/conversation-settings. PutTool refuses the
// same as Modify and Tool.Validate.
func (s *ConversationSettingsService) PutTool(ctx context.Context, headID string, t Tool) (*ConversationSettings, error) {
	const operation = "ConversationSettings.PutTool"
	faults := faultList{}
	faults.add(checkHeadID(operation, headID))
	switch {
	case t.Name == "": // it replaces none
		faults.add(t.validate(operation, nil))
	case !t.unchanged():
		faults.add(t.validate(operation, t.asServed()))
	}
	if err := faults.join(); err != nil {
		return nil, err
	}
	return s.modify(ctx, operation, headID, func(cs *ConversationSettings) error {
		if old := cs.tool(t.Name); old != nil {
			*old = t.inherit(old)
			return nil
		}
		cs.Tools = append(cs.Tools, t)
		return nil
	})
}

// RemoveTool removes the tool of that name from a head. If there is none, it
// changes nothing and returns no error.
//
// GET /head/{id}, PUT /head/{headId}/conversation-settings.
func (s *ConversationSettingsService) RemoveTool(ctx context.Context, headID, name string) (*ConversationSettings, error) {
	const operation = "ConversationSettings.RemoveTool"
	faults := faultList{}
	faults.add(checkHeadID(operation, headID))
	faults.add(checkText(operation, "tool name", name, "give the name of the tool to remove"))
	if err := faults.join(); err != nil {
		return nil, err
	}
	return s.modify(ctx, operation, headID, func(cs *ConversationSettings) error {
		cs.Tools = slices.DeleteFunc(cs.Tools, func(t Tool) bool { return t.Name == name })
		return nil
	})
}

func (s *ConversationSettingsService) modify(ctx context.Context, operation, headID string, change func(*ConversationSettings) error) (*ConversationSettings, error) {
	unlock, err := s.core.lock(ctx, operation, headLock("settings", headID))
	if err != nil {
		return nil, err
	}
	defer unlock()
	head, err := (&HeadsService{s.service}).Get(ctx, headID)
	if err != nil {
		return nil, err
	}
	if !head.Has("conversationSettings") {
		return nil, newDecodeError(operation, head.Raw.Bytes(), errNoSettings)
	}
	before, after := head.settings(), head.settings().clone()
	if err := change(after); err != nil {
		return nil, err
	}
	if bytes.Equal(before.document(), after.document()) {
		return after, nil
	}
	changed := before.changedTools(after)
	if head.OperationMode != OperationModeOC && len(changed) > 0 {
		return nil, invalid(operation, "tools", fmt.Sprintf("hold %q, which head %s can't call in operation mode %q", changed[0].Name, headID, head.OperationMode),
			"set operationMode oc first (HeadUpdate.OperationMode)", useOperationMode)
	}
	if err := validateTools(operation, after.Tools, changed); err != nil {
		return nil, err
	}
	if err := after.checkExtras(operation, before); err != nil {
		return nil, err
	}
	answer, err := s.put(ctx, headID, after)
	if err != nil {
		return nil, err
	}
	read := func() (*ConversationSettings, error) { return s.Get(ctx, headID) }
	shown := func(now *ConversationSettings) bool { return rawjson.Same(now.document(), after.document()) }
	if err := confirm(operation, answer, headID, read, shown); err != nil {
		return nil, err
	}
	return after, nil
}

// put writes settings that were validated.
func (s *ConversationSettingsService) put(ctx context.Context, headID string, cs *ConversationSettings) (*Response, error) {
	body := rawjson.AppendMember([]byte{'{'}, "conversationSettings", cs.document())
	return doPlain(ctx, s.core, opSettingsReplace, payload{param: headID, body: append(body, '}')})
}
