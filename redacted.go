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
// A secret that is set becomes "[redacted]". URLs keep everything but the
// values of their query; those of tools also lose path segments of 16
// characters or more, apart from the tool's name. In fields of raw JSON and in
// keys that this library doesn't know, every text under a name with key, token,
// secret, password, credential or authorization becomes "[redacted]".
func (h *Head) Redacted() *Head {
	if h == nil {
		return nil
	}
	c := *h
	c.Raw = nil
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
	c.PublicURL = redactAccessURL(h.PublicURL)
	if h.FileURL != nil {
		fileURL := mask.URL(*h.FileURL)
		c.FileURL = &fileURL
	}
	for _, field := range []*string{&c.DocumentURL, &c.HeadVisualVideoURL, &c.PosterVideoImage} {
		*field = mask.URL(*field)
	}
	c.Phrases, c.Suggestions = slices.Clone(h.Phrases), slices.Clone(h.Suggestions)
	c.AllowedOrigins, c.AllowedIframeOrigins = slices.Clone(h.AllowedOrigins), slices.Clone(h.AllowedIframeOrigins)
	c.CustomWords = maps.Clone(h.CustomWords)
	for _, field := range []*json.RawMessage{&c.PluginOperationalModeConfig, &c.DocumentJSONDTO, &c.IconConfig, &c.VideoCache} {
		*field = mask.JSON(*field)
	}
	c.ConversationSettings = h.ConversationSettings.redacted()
	return &c
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

func (cs *ConversationSettings) redacted() *ConversationSettings {
	if cs == nil {
		return nil
	}
	c := new(ConversationSettings)
	if c.UnmarshalJSON(mask.JSON(cs.document())) != nil {
		return new(ConversationSettings)
	}
	for i := range c.Tools {
		c.Tools[i].URL = mask.CallbackURL(cs.Tools[i].URL, c.Tools[i].Name)
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
