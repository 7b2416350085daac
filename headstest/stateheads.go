package headstest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	heads "github.com/headsapi/heads-go"
)

// Visual is a head visual to add. If ID is empty, it is generated. An empty Mode
// means default.
type Visual struct {
	ID       string
	Mode     heads.VisualMode
	HideMode bool           // the visual has its mode, but answers do not show it
	Fields   map[string]any // further JSON fields of answers, which replace generated ones
}

// Head is a head to add. Empty fields are generated: the id, a visual in default
// mode, a name, a voice of the provider azure, the mode ttt.
//
// Fields has further fields of a head in the contract, by their JSON names. An id in it is
// ignored. Extra has fields that a head does not have in the contract, as the service may add
// them.
type Head struct {
	ID, HeadVisualID, Name, TTSProvider, TTSVoice string
	OperationMode                                 heads.OperationMode
	VideoStreaming, EnableEvents                  bool
	Fields                                        map[string]any
	Extra                                         map[string]any
}

// Validate returns an error that names every fault of Fields and Extra: in Fields a
// field that is not in the contract or has another type, in Extra a field that is
// in the contract, and in both a value that can't be encoded as JSON.
func (h Head) Validate() error {
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(h.Fields)) {
		rule, known := fieldRule(name)
		raw, err := encodeJSON(h.Fields[name])
		switch {
		case name == "id":
		case !known:
			faults = append(faults, fmt.Sprintf("the contract gives a head no field %q; a field that the service has added belongs in Extra", name))
		case err != nil:
			faults = append(faults, fmt.Sprintf("the value of %s has no JSON form: %v", name, err))
		case !rule.holds(decode(raw)):
			faults = append(faults, name+" must be "+rule.wants)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.Extra)) {
		if _, known := fieldRule(name); known || name == "id" {
			faults = append(faults, fmt.Sprintf("the contract gives a head the field %q, which does not belong in Extra", name))
		} else if _, err := encodeJSON(h.Extra[name]); err != nil {
			faults = append(faults, fmt.Sprintf("the value of %s has no JSON form: %v", name, err))
		}
	}
	if len(faults) > 0 {
		return errors.New(strings.Join(faults, "; "))
	}
	return nil
}

func (st *state) addVisual(v Visual) string {
	if v.ID == "" {
		v.ID = st.ids.uuid()
	}
	if v.Mode == "" {
		v.Mode = heads.VisualModeDefault
	}
	shown := newDocument(map[string]any{
		"id": v.ID, "createdAt": now(), "updatedAt": now(), "name": "Visual", "mode": v.Mode,
	})
	if v.HideMode {
		delete(shown, "mode")
	}
	maps.Copy(shown, newDocument(v.Fields))
	st.visuals[v.ID] = &visual{mode: v.Mode, shown: shown}
	return v.ID
}

func (st *state) addHead(h Head) string {
	if h.ID == "" {
		h.ID = st.ids.uuid()
	}
	if _, known := st.visuals[h.HeadVisualID]; !known {
		h.HeadVisualID = st.addVisual(Visual{ID: h.HeadVisualID})
	}
	st.heads[h.ID] = st.newHead(h)
	delete(st.encoded, h.ID)
	return h.ID
}

// newHead fills in every documented field.
func (st *state) newHead(h Head) document {
	ids, org := st.ids, st.organisation
	d := newDocument(map[string]any{
		"id": h.ID, "name": cmp.Or(h.Name, "Ada"), "alias": "ada", "language": "en-US", "languageSpeechRecognition": "en-US",
		"ttsProvider": cmp.Or(h.TTSProvider, "azure"), "ttsVoice": cmp.Or(h.TTSVoice, "en-US-plain"),
		"operationMode": cmp.Or(h.OperationMode, heads.OperationModeTTT), "ocProvider": "playground",
		"promptConfig": map[string]any{"id": ids.uuid(), "system_prompt": "You are a friendly guide."},
		"greetings":    "Hello, how can I help you?", "voiceflowApiKey": nil, "isRandomSuggestions": false,
		"phrases": []string{}, "suggestions": []string{"What can you do?"}, "customWords": map[string]string{},
		"fileUrl": nil, "pluginOperationalModeConfig": nil, "semanticThreshold": 0.75,
		"videoStreaming": h.VideoStreaming, "enableEvents": h.EnableEvents,
		"conversationSettings": map[string]any{"tools": []any{}},

		"createdAt": now(), "updatedAt": now(), "publicId": ids.headPublicID(), "orgId": org["id"], "orgPublicId": org["publicId"],
		"headVisualId": h.HeadVisualID, "isActive": true, "documentJsonDto": nil, "documentUrl": "https://files.example.test/document.pdf",
		"encodedPath": "heads/" + h.ID, "iconConfig": map[string]any{"color": "#336699"}, "videoCache": nil,
		"allowedOrigins": []string{"https://www.example.test"}, "allowedIframeOrigins": []string{},
		"expirationSeconds": 3600, "ttsStream": false, "headVisualVideoUrl": "https://files.example.test/visual.mp4",
		"posterVideoImage": "https://files.example.test/poster.png", "ttsDisplayName": "Plain",
		"organisation": org.encode(),
	})
	given := newDocument(h.Fields)
	delete(given, "id") // only Head.ID sets it
	maps.Copy(d, given)
	maps.Copy(d, newDocument(h.Extra))
	if given["splitter"] == nil {
		d.set("splitter", !d.is("videoStreaming"))
	}
	if given["publicUrl"] == nil {
		d.set("publicUrl", st.accessURL(d))
	}
	return d
}

// checkFields returns an error that names every invalid field.
func checkFields(sent document) error {
	var wrong []string
	for _, key := range slices.Sorted(maps.Keys(sent)) {
		value := decode(sent[key])
		if rule, known := writable[key]; known && !rule.accepts(value) {
			wrong = append(wrong, key+" must be "+rule.wants)
		} else if holdsPlaceholder(value) {
			wrong = append(wrong, key+" holds a placeholder value")
		}
	}
	if len(wrong) > 0 {
		return stateErrorf(badValue, "%s", strings.Join(wrong, "; "))
	}
	return nil
}

// merge replaces the fields of the head with those that were sent. Fields that are
// not in the contract are stored unchanged.
func (st *state) merge(h, sent document) error {
	if len(sent) == 0 {
		return nil
	}
	next := maps.Clone(h)
	maps.Copy(next, sent)
	if _, changed := sent["promptConfig"]; changed {
		next["promptConfig"] = mergePrompt(h["promptConfig"], sent["promptConfig"])
	}
	_, provider := sent["ttsProvider"]
	_, voice := sent["ttsVoice"]
	if h.is("videoStreaming") && (provider || voice) {
		if err := st.voiceStreams(next.str("ttsProvider"), next.str("ttsVoice")); err != nil {
			return err
		}
	}
	next.touch()
	maps.Copy(h, next)
	return nil
}

// mergePrompt keeps the prompt's id, which is read-only.
func mergePrompt(before, sent json.RawMessage) json.RawMessage {
	var old, next document
	_ = json.Unmarshal(before, &old) // empty for null, and for anything else that a test has set
	_ = json.Unmarshal(sent, &next)  // checkFields has made sure that it is an object
	delete(next, "id")
	if old == nil {
		old = document{}
	}
	maps.Copy(old, next)
	return old.encode()
}
