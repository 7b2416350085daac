package heads

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/headsapi/heads-go/internal/exactjson"
	"github.com/headsapi/heads-go/internal/rawjson"
	"github.com/headsapi/heads-go/internal/transport"
)

// HeadsService reads and changes heads.
type HeadsService struct{ service }

// OperationMode is how a head answers. The service knows more values than the
// constants.
type OperationMode string

// The operation modes that the contract names. Only a head in mode oc (open
// conversation) can call tools.
const (
	OperationModeTTT OperationMode = "ttt"
	OperationModeOC  OperationMode = "oc"
)

// Head is the complete configuration of a head.
//
// Fields are plain values. A nil pointer, slice or map means that the service
// sent null or nothing; Has distinguishes the two.
//
// Nothing shows the secrets of a Head: it is safe to print, to log and to encode
// as JSON. To store a head, store Raw.Bytes(). Decoding that gives a Head with
// all its secrets.
type Head struct {
	ID                          string                `json:"id"` // UUID
	Name                        string                `json:"name"`
	Alias                       string                `json:"alias"`
	Language                    string                `json:"language"`                  // of the form xx-XX
	LanguageSpeechRecognition   string                `json:"languageSpeechRecognition"` // of the form xx-XX
	TTSProvider                 string                `json:"ttsProvider"`
	TTSVoice                    string                `json:"ttsVoice"`
	OperationMode               OperationMode         `json:"operationMode"`
	OCProvider                  string                `json:"ocProvider"`
	PromptConfig                *PromptConfig         `json:"promptConfig"`
	Greetings                   string                `json:"greetings"`
	VoiceflowAPIKey             *Secret               `json:"voiceflowApiKey"` // null allowed
	IsRandomSuggestions         bool                  `json:"isRandomSuggestions"`
	Phrases                     []string              `json:"phrases"`
	Suggestions                 []string              `json:"suggestions"`
	CustomWords                 map[string]string     `json:"customWords"`                          // word to spoken form
	PublicURL                   Secret                `json:"publicUrl"`                            // an access URL with its key; see Client.AccessURL
	FileURL                     *string               `json:"fileUrl"`                              // null allowed
	PluginOperationalModeConfig Raw                   `json:"pluginOperationalModeConfig,omitzero"` // object or null
	SemanticThreshold           float64               `json:"semanticThreshold"`
	VideoStreaming              bool                  `json:"videoStreaming"` // see SetVideoStreaming
	Splitter                    bool                  `json:"splitter"`       // read-only; never together with VideoStreaming
	EnableEvents                bool                  `json:"enableEvents"`   // see WebhooksService.SetDelivery
	ConversationSettings        *ConversationSettings `json:"conversationSettings"`

	// The fields below are read-only: the service ignores them in an update.

	CreatedAt            Time          `json:"createdAt"`
	UpdatedAt            Time          `json:"updatedAt"`
	PublicID             string        `json:"publicId"`
	OrgID                string        `json:"orgId"`
	OrgPublicID          string        `json:"orgPublicId"`
	HeadVisualID         string        `json:"headVisualId"`
	DocumentURL          string        `json:"documentUrl"`
	EncodedPath          string        `json:"encodedPath"`
	HeadVisualVideoURL   string        `json:"headVisualVideoUrl"`
	PosterVideoImage     string        `json:"posterVideoImage"`
	TTSDisplayName       string        `json:"ttsDisplayName"`
	IsActive             bool          `json:"isActive"`
	TTSStream            bool          `json:"ttsStream"`
	ExpirationSeconds    float64       `json:"expirationSeconds"`
	AllowedOrigins       []string      `json:"allowedOrigins"`
	AllowedIframeOrigins []string      `json:"allowedIframeOrigins"`
	DocumentJSONDTO      Raw           `json:"documentJsonDto,omitzero"`
	IconConfig           Raw           `json:"iconConfig,omitzero"`
	VideoCache           Raw           `json:"videoCache,omitzero"`
	Organisation         *Organisation `json:"organisation"`

	// Raw is the document as received, including fields that Head doesn't have.
	Raw Raw `json:"-"`
}

// PromptConfig holds the prompt of a head. Its ID is read-only. If the service
// sends the prompt as a plain string, that is the SystemPrompt.
type PromptConfig struct {
	ID           string `json:"id,omitempty"`
	SystemPrompt string `json:"system_prompt"`
}

// Organisation is the owner of a head. All of it is read-only.
type Organisation struct {
	ID               string  `json:"id"`
	CreatedAt        Time    `json:"createdAt"`
	UpdatedAt        Time    `json:"updatedAt"`
	APIKey           Secret  `json:"apiKey"`
	Name             string  `json:"name"`
	PublicID         string  `json:"publicId"`
	Alias            string  `json:"alias"`
	SubscriptionType string  `json:"subscriptionType"`
	Slots            float64 `json:"slots"`
	Streaming        bool    `json:"streaming"`
	IsActive         bool    `json:"isActive"`
}

var (
	opHeadsGet    = transport.NewOperation("Heads.Get", http.MethodGet, "/head/{id}")
	opHeadsUpdate = transport.NewOperation("Heads.Update", http.MethodPut, "/head/update")
)

// Get reads the complete configuration of a head.
//
// GET /head/{id}. The id is the head's UUID. Get returns an InvalidError for a
// public id.
//
// An answer that is not the document of this head, such as a maintenance page or
// another head, is a DecodeError. So is a field whose JSON type differs from the
// contract. If the contract leaves the type open, the field is zero instead, and
// its value stays in Raw. A tool of another shape is read as far as possible;
// see Tool.
func (s *HeadsService) Get(ctx context.Context, headID string) (*Head, error) {
	if err := checkHeadID(opHeadsGet.Name, headID); err != nil {
		return nil, err
	}
	return do[Head](ctx, s.core, opHeadsGet, payload{param: headID})
}

// Update changes the fields that u sets, and nothing else.
//
// PUT /head/update. Update returns an InvalidError for an id that is not a UUID,
// and the error of Validate, and sends nothing if there is one. The contract does
// not describe the answer; any status from 200 to 299 is success.
func (s *HeadsService) Update(ctx context.Context, headID string, u *HeadUpdate) error {
	p, err := updatePayload(headID, u)
	if err != nil {
		return err
	}
	return doQuiet(ctx, s.core, opHeadsUpdate, p)
}

// update is Update for a caller that reads the answer.
func (s *HeadsService) update(ctx context.Context, headID string, u *HeadUpdate) (*Response, error) {
	p, err := updatePayload(headID, u)
	if err != nil {
		return nil, err
	}
	return doPlain(ctx, s.core, opHeadsUpdate, p)
}

func updatePayload(headID string, u *HeadUpdate) (payload, error) {
	var faults faultList
	faults.add(checkHeadID(opHeadsUpdate.Name, headID))
	faults.add(u.Validate())
	return payload{body: u.document(headID)}, faults.join()
}

// Modify reads a head, calls change with it and sends only the fields that
// change has changed. It returns the head as change left it, with Raw as it was
// read. If nothing changed, nothing is sent.
//
// GET /head/{id}, PUT /head/update. A changed voice or provider brings its
// partner. Modify returns an InvalidError for a field that an update can't
// change, and names the method that does change it. It also returns an
// InvalidError if change has removed the prompt. An error of change is returned
// as it is, and nothing is sent.
//
// If the answer to the update has an unknown shape, such as a page of a proxy,
// Modify reads the head again. It returns an error unless the head shows the
// change.
//
// Calls of one client for one head take turns. So change must not modify the
// same head through the same client: it would wait for itself until the context
// ends. The service has no versions. If another program writes the same fields
// between the read and the write, its values are overwritten.
func (s *HeadsService) Modify(ctx context.Context, headID string, change func(*Head) error) (*Head, error) {
	const operation = "Heads.Modify"
	faults := faultList{}
	faults.add(checkHeadID(operation, headID))
	if change == nil {
		faults.add(invalid(operation, "change", "is nil", "give a function that changes the head"))
	}
	if err := faults.join(); err != nil {
		return nil, err
	}
	unlock, err := s.core.lock(ctx, operation, headLock("configuration", headID))
	if err != nil {
		return nil, err
	}
	defer unlock()
	before, err := s.Get(ctx, headID)
	if err != nil {
		return nil, err
	}
	after := new(Head)
	if err := decodeAnswer(before.Raw.bytes(), after); err != nil {
		return nil, newDecodeError(operation, before.Raw.bytes(), err)
	}
	if err := change(after); err != nil {
		return nil, err
	}
	u, err := diffHeads(operation, before, after)
	if err != nil {
		return nil, err
	}
	if len(u.list()) == 0 {
		return after, nil
	}
	answer, err := s.update(ctx, headID, u)
	if err != nil {
		return nil, err
	}
	read := func() (*Head, error) { return s.Get(ctx, headID) }
	if err := confirm(operation, answer, headID, read, u.shownBy); err != nil {
		return nil, err
	}
	return after, nil
}

// Has reports whether the document that the head was read from holds a field,
// even one that is null. The name is the one in JSON.
func (h *Head) Has(field string) bool {
	_, ok := rawjson.Value(h.Raw.bytes(), field)
	return ok
}

// LogValue shows id and name.
func (h Head) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", label(h.ID)), slog.String("name", label(h.Name)))
}

// UnmarshalJSON reads the document of a head, as the service sends it or as it was
// stored, and keeps it in Raw. Names are exact: a field in another letter case is
// in Raw only. A field that occurs twice is an error.
func (h *Head) UnmarshalJSON(document []byte) error { return unmarshal(document, h.decode) }

func (h *Head) decode(document []byte) error {
	if err := decodeObject(document, h, exactjson.Rules{Open: isOpenField, Mend: promptOfString}); err != nil {
		return err
	}
	h.Raw = rawOf(bytes.Clone(document))
	if h.ConversationSettings == nil {
		return nil
	}
	for i := range h.ConversationSettings.Tools {
		h.ConversationSettings.Tools[i].served = true
	}
	return nil
}

func (h *Head) prove(id string) error { return proveID("head", h.ID, id) }

// promptOfString reads a promptConfig that is a string as the prompt.
func promptOfString(path string, value []byte) []byte {
	if path != "promptConfig" || rawjson.Kind(value) != "string" {
		return nil
	}
	return promptObject(value)
}

// isOpenField reports whether the contract leaves the type of a field of a head open.
func isOpenField(path string) bool {
	name, _, _ := strings.Cut(path, ".")
	return slices.ContainsFunc(headFields, func(f headField) bool {
		return f.access == open && (f.name == path || f.name == name)
	})
}
