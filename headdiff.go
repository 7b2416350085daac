package heads

import (
	"encoding/json"
	"reflect"
)

// diffHeads returns the update that turns before into after. It holds exactly
// the fields that differ; a changed voice or provider brings its partner. Lists
// and maps are compared by content. If the heads are the same, the update has no
// fields. A difference in a field that an update can't change is an InvalidError.
func diffHeads(operation string, before, after *Head) (*HeadUpdate, error) {
	faults := readOnlyChanges(operation, before, after)
	u := NewHeadUpdate()
	for _, field := range writableFields {
		was, is := encodeField(field.value(before)), encodeField(field.value(after))
		switch {
		case was.equal(is):
		case !is.isNull():
			u.put(field.name, is)
		case !field.canEmpty():
			faults.add(invalid(operation, field.name, "was removed, which the service has no way to do", "set SystemPrompt to \"\" to empty it", useSystemPrompt))
		case field.access == nullable || !was.isEmpty():
			u.put(field.name, field.emptied())
		}
	}
	if u.has("ttsProvider") || u.has("ttsVoice") {
		u.Voice(after.TTSProvider, after.TTSVoice)
	}
	if err := faults.join(); err != nil {
		return nil, err
	}
	return u, nil
}

// readOnlyChanges returns a fault for each difference that an update can't make.
func readOnlyChanges(operation string, before, after *Head) (faults faultList) {
	for _, field := range headFields {
		if !field.isWritable() && field.changed(before, after) {
			faults.add(faultOf(operation, field.name, field.unchangeable()))
		}
	}
	return faults
}

// shownBy reports whether a head has all values of the update.
func (u *HeadUpdate) shownBy(h *Head) bool {
	for _, f := range u.list() {
		has := encodeField(findField(f.name).value(h))
		bothEmpty := has.isEmpty() && f.isEmpty()
		if !bothEmpty && !sameJSON(has.raw, f.raw) {
			return false
		}
	}
	return true
}

// sameJSON compares two documents by content; the order of keys is ignored.
func sameJSON(a, b []byte) bool {
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}
