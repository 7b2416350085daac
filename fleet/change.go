package fleet

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/rawjson"
)

// Change describes one change that was made or would be made. It is meant for display: secrets are
// masked and long texts are shortened.
type Change struct {
	Field string `json:"field"` // JSON name, voice, streaming, delivery, webhook URL or tool NAME
	From  string `json:"from"`  // "" for what was added
	To    string `json:"to"`    // "" for what was removed
}

const (
	maxChange = 120 // of From and To, in characters
	redacted  = "[redacted]"
)

// fieldChanges compares the fields of a spec with those of a head. It returns the values to set and
// their descriptions.
func fieldChanges(head *heads.Head, set map[string]any) (fieldWork, error) {
	work := fieldWork{}
	if len(set) == 0 {
		return work, nil
	}
	document := head.Raw.Bytes()
	now, err := fieldsOf(document)
	if err != nil {
		return work, err
	}
	for name, value := range set {
		raw, err := rawjson.Encode(value)
		if err != nil {
			return work, err
		}
		wanted, err := decodeExactly(raw)
		if err != nil {
			return work, err
		}
		if !sameField(name, now[name], wanted) {
			work.put(name, now[name], raw)
		}
	}
	if len(work.set) == 0 {
		return work, nil
	}
	work.changes, err = describeFields(document, work.set)
	return work, err
}

// fieldWork is the work to do on the fields of a head.
type fieldWork struct {
	set     map[string]json.RawMessage // the values to send, unchanged in their digits and order of keys
	was     map[string]any             // the values of the head, as fieldsOf returns them
	changes []Change
}

func (w *fieldWork) put(name string, was any, value json.RawMessage) {
	if w.set == nil {
		w.set, w.was = map[string]json.RawMessage{}, map[string]any{}
	}
	w.set[name], w.was[name] = value, was
}

// update returns an update with the fields in the contract's order.
func (w *fieldWork) update() *heads.HeadUpdate {
	u := heads.NewHeadUpdate()
	for _, name := range heads.WritableFields() {
		if value, ok := w.set[name]; ok {
			u.Set(name, value)
		}
	}
	return u
}

// unseen returns the name of a field that still has its old value after an update, or "". It
// ignores voiceflowApiKey, which a service may never return.
func (w *fieldWork) unseen(head *heads.Head) (string, error) {
	now, err := fieldsOf(head.Raw.Bytes())
	if err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(w.set)) {
		if name != "voiceflowApiKey" && sameField(name, now[name], w.was[name]) {
			return name, nil
		}
	}
	return "", nil
}

// sameField compares the values of a field as decoded JSON.
func sameField(name string, now, wanted any) bool {
	switch name {
	case "promptConfig":
		nowPrompt, wantedPrompt := promptOf(now), promptOf(wanted)
		return nowPrompt != nil && reflect.DeepEqual(nowPrompt, wantedPrompt)
	case "phrases", "suggestions", "customWords":
		return sameValue(now, wanted) || isEmpty(now) && isEmpty(wanted)
	}
	return sameValue(now, wanted)
}

// promptOf returns the prompt in a promptConfig. A promptConfig may also be the prompt itself, as a
// text.
func promptOf(config any) any {
	object, ok := config.(map[string]any)
	if text, isText := config.(string); !ok && isText {
		return text
	}
	return object["system_prompt"]
}

// isEmpty reports whether a value is null, an empty list or an empty object.
func isEmpty(v any) bool {
	return v == nil || reflect.ValueOf(v).Kind() != reflect.String && reflect.ValueOf(v).Len() == 0
}

// describeFields returns the changes of a document's fields in the contract's order, with secrets
// masked.
func describeFields(document []byte, set map[string]json.RawMessage) ([]Change, error) {
	after := document
	for name, value := range set {
		after = rawjson.With(after, name, value)
	}
	secrets := append(mask.SecretsOf(document), mask.SecretsOf(after)...)
	from, err := fieldsOf(mask.JSON(document, secrets...))
	if err != nil {
		return nil, err
	}
	to, err := fieldsOf(mask.JSON(after, secrets...))
	if err != nil {
		return nil, err
	}
	var changes []Change
	for _, name := range heads.WritableFields() {
		if _, ok := set[name]; !ok {
			continue
		}
		field, was, is := name, from[name], to[name]
		if name == "promptConfig" {
			field, was, is = "promptConfig.system_prompt", promptOf(was), promptOf(is)
		}
		changes = append(changes, newChange(field, textOf(was), textOf(is)))
	}
	return changes, nil
}

// emptyFields are the fields of a head without any values.
var emptyFields = sync.OnceValues(func() (map[string]any, error) {
	document, err := json.Marshal(heads.Head{})
	if err != nil {
		return nil, err
	}
	fields, err := decodeExactly(document)
	return fields.(map[string]any), err
})

// fieldsOf returns the fields of a document as decoded JSON, with all digits of numbers. A null
// becomes the field's empty value, as in a heads.Head.
func fieldsOf(document []byte) (map[string]any, error) {
	empty, err := emptyFields()
	if err != nil {
		return nil, err
	}
	fields := maps.Clone(empty)
	for m := range rawjson.Members(document) {
		if rawjson.IsNull(m.Value) {
			continue
		}
		if fields[string(m.Key)], err = decodeExactly(m.Value); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// textOf returns a text unchanged, "" for null, and JSON for any other value.
func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	text, _ := rawjson.Encode(v) // can't fail: v was decoded from JSON
	return string(text)
}

func newChange(field, from, to string) Change {
	from, to = clipBoth(from, to)
	return Change{Field: clip(field), From: from, To: to}
}

func sameVoice(v *heads.Voice, h *heads.Head) bool {
	return v == nil || v.ID == h.TTSVoice && strings.EqualFold(v.Provider, h.TTSProvider)
}

func voiceChange(v *heads.Voice, h *heads.Head) Change {
	return newChange("voice", h.TTSProvider+"/"+h.TTSVoice, v.Provider+"/"+v.ID)
}

func switchChange(field string, to bool) Change {
	return Change{Field: field, From: fmt.Sprint(!to), To: fmt.Sprint(to)}
}

// clip turns a text into one line of at most maxChange characters.
func clip(text string) string { return mask.OneLine(text, maxChange) }

// oneLine turns a text into one line of any length.
func oneLine(text string) string { return mask.OneLine(text, len(text)) }

// clipBoth clips two texts so that their first difference stays visible.
func clipBoth(from, to string) (string, string) {
	a, b := []rune(oneLine(from)), []rune(oneLine(to))
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	if start := same - maxChange/3; start > 0 && max(len(a), len(b)) > maxChange {
		return clip("…" + string(a[start:])), clip("…" + string(b[start:]))
	}
	return clip(from), clip(to)
}

// normalEvents returns event types in lower case, sorted, without duplicates.
func normalEvents(types []heads.EventType) []heads.EventType {
	normal := make([]heads.EventType, len(types))
	for i, t := range types {
		normal[i] = heads.EventType(strings.ToLower(string(t)))
	}
	slices.Sort(normal)
	return slices.Compact(normal)
}

func joinEvents(types []heads.EventType) string {
	texts := make([]string, len(types))
	for i, t := range types {
		texts[i] = clip(string(t))
	}
	return strings.Join(texts, ", ")
}
