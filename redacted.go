package heads

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"

	"github.com/headsapi/heads-go/internal/mask"
)

// Redacted returns a deep copy without secrets and without Raw, which is safe
// to encode as JSON.
//
// A secret that is set becomes "[redacted]", also inside any text of the head,
// such as a greeting or the prompt. URLs keep everything but the values of their
// query, also inside texts; those of tools also lose path segments of 16
// characters or more, apart from the tool's name. In fields of raw JSON and in
// keys that this library doesn't know, every text under a name with key, token,
// secret, password, credential or authorization becomes "[redacted]".
func (h *Head) Redacted() *Head {
	if h == nil {
		return nil
	}
	c := *h
	c.Raw = nil
	secrets := h.secrets()
	c.VoiceflowAPIKey = copyOf(h.VoiceflowAPIKey)
	if c.VoiceflowAPIKey != nil {
		*c.VoiceflowAPIKey = c.VoiceflowAPIKey.mask()
	}
	if h.PromptConfig != nil {
		c.PromptConfig = copyOf(h.PromptConfig)
	}
	if h.Organisation != nil {
		c.Organisation = copyOf(h.Organisation)
		c.Organisation.APIKey = h.Organisation.APIKey.mask()
	}
	c.PublicURL = Secret(mask.Text(redactAccessURL(h.PublicURL).Reveal(), secrets...))
	c.FileURL = copyOf(h.FileURL)
	if c.FileURL != nil {
		*c.FileURL = mask.URL(*c.FileURL)
	}
	for _, field := range []*string{&c.DocumentURL, &c.HeadVisualVideoURL, &c.PosterVideoImage} {
		*field = mask.URL(*field)
	}
	c.Phrases, c.Suggestions = slices.Clone(h.Phrases), slices.Clone(h.Suggestions)
	c.AllowedOrigins, c.AllowedIframeOrigins = slices.Clone(h.AllowedOrigins), slices.Clone(h.AllowedIframeOrigins)
	c.CustomWords = maps.Clone(h.CustomWords)
	for _, text := range c.texts() {
		*text = mask.Text(*text, secrets...)
	}
	for word, spoken := range h.CustomWords {
		delete(c.CustomWords, word)
		c.CustomWords[mask.Text(word, secrets...)] = mask.Text(spoken, secrets...)
	}
	for _, field := range []*json.RawMessage{&c.PluginOperationalModeConfig, &c.DocumentJSONDTO, &c.IconConfig, &c.VideoCache} {
		*field = mask.JSON(*field, secrets...)
	}
	c.ConversationSettings = h.ConversationSettings.redacted(secrets...)
	return &c
}

// secrets returns every secret of the head that is known by its place.
func (h *Head) secrets() []string {
	fields, _ := json.Marshal(h) // it may have changed since it was read
	return append(mask.SecretsOf(h.Raw), mask.SecretsOf(fields)...)
}

// texts returns all texts of the head outside raw JSON and the conversation settings.
func (h *Head) texts() []*string {
	texts := []*string{
		&h.ID, &h.Name, &h.Alias, &h.Language, &h.LanguageSpeechRecognition, &h.TTSProvider, &h.TTSVoice, (*string)(&h.OperationMode),
		&h.OCProvider, &h.Greetings, &h.PublicID, &h.OrgID, &h.OrgPublicID, &h.HeadVisualID, &h.DocumentURL, &h.EncodedPath,
		&h.HeadVisualVideoURL, &h.PosterVideoImage, &h.TTSDisplayName,
	}
	if h.PromptConfig != nil {
		texts = append(texts, &h.PromptConfig.ID, &h.PromptConfig.SystemPrompt)
	}
	if h.FileURL != nil {
		texts = append(texts, h.FileURL)
	}
	if o := h.Organisation; o != nil {
		texts = append(texts, &o.ID, &o.Name, &o.PublicID, &o.Alias, &o.SubscriptionType)
	}
	for _, list := range [][]string{h.Phrases, h.Suggestions, h.AllowedOrigins, h.AllowedIframeOrigins} {
		for i := range list {
			texts = append(texts, &list[i])
		}
	}
	return texts
}

// Redacted returns a deep copy without secrets, which is safe to encode as
// JSON: the shared key becomes "[redacted]", and the URL loses the values of
// its query and path segments of 16 characters or more.
func (w *Webhook) Redacted() *Webhook {
	if w == nil {
		return nil
	}
	c := *w
	c.SharedKey = w.SharedKey.mask()
	c.URL = mask.CallbackURL(w.URL, "")
	c.Duplicates = slices.Clone(w.Duplicates)
	return &c
}

func (cs *ConversationSettings) redacted(secrets ...string) *ConversationSettings {
	if cs == nil {
		return nil
	}
	c := new(ConversationSettings)
	if c.UnmarshalJSON(mask.JSON(cs.document(), secrets...)) != nil {
		return new(ConversationSettings)
	}
	for i := range c.Tools {
		c.Tools[i].URL = mask.Text(mask.CallbackURL(cs.Tools[i].URL, cs.Tools[i].Name), secrets...)
	}
	return c
}

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// mask returns the replacement of a secret. An empty secret stays empty.
func (s Secret) mask() Secret {
	if s == "" {
		return ""
	}
	return redacted
}

// redactAccessURL returns an access URL without its key. A text that is not a
// URL is masked whole.
func redactAccessURL(raw Secret) Secret {
	if !isAbsoluteURL(raw.Reveal()) {
		return raw.mask()
	}
	return Secret(mask.URL(raw.Reveal()))
}

func isAbsoluteURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme != "" && u.Host != ""
}
