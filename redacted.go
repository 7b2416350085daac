package heads

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Redacted returns a deep copy without secrets and without Raw, which is safe
// to encode as JSON.
//
// A secret that is set becomes "[redacted]". URLs keep everything but the
// values of their query; those of tools also lose path segments of 16
// characters or more, apart from the tool's name. In fields of raw JSON and in
// keys that this library doesn't know, every text under a name with key, token,
// secret or password becomes "[redacted]".
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
		fileURL := redactURL(*h.FileURL)
		c.FileURL = &fileURL
	}
	for _, field := range []*string{&c.DocumentURL, &c.HeadVisualVideoURL, &c.PosterVideoImage} {
		*field = redactURL(*field)
	}
	c.Phrases, c.Suggestions = slices.Clone(h.Phrases), slices.Clone(h.Suggestions)
	c.AllowedOrigins, c.AllowedIframeOrigins = slices.Clone(h.AllowedOrigins), slices.Clone(h.AllowedIframeOrigins)
	c.CustomWords = maps.Clone(h.CustomWords)
	for _, field := range []*json.RawMessage{&c.PluginOperationalModeConfig, &c.DocumentJSONDTO, &c.IconConfig, &c.VideoCache} {
		*field = redactJSON(*field)
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
	c.URL = redactCallbackURL(w.URL, "")
	c.Duplicates = slices.Clone(w.Duplicates)
	return &c
}

func (cs *ConversationSettings) redacted() *ConversationSettings {
	if cs == nil {
		return nil
	}
	c := new(ConversationSettings)
	if c.UnmarshalJSON(redactJSON(cs.document())) != nil {
		return new(ConversationSettings)
	}
	for i := range c.Tools {
		c.Tools[i].URL = redactCallbackURL(cs.Tools[i].URL, c.Tools[i].Name)
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

// mask is what stands for a secret; one that is not set stays empty.
func (s Secret) mask() Secret {
	if s == "" {
		return ""
	}
	return redacted
}

// redactAccessURL keeps an access URL without its key, and nothing of a text
// that is no URL.
func redactAccessURL(raw Secret) Secret {
	if !isAbsoluteURL(raw.Reveal()) {
		return raw.mask()
	}
	return Secret(redactURL(raw.Reveal()))
}

func isAbsoluteURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme != "" && u.Host != ""
}

// redactURL takes user name, values of the query and fragment out of a URL. A
// text that is none stays as it is.
func redactURL(text string) string {
	scheme, rest, found := strings.Cut(text, "://")
	if !found || strings.ContainsAny(scheme, " \t\r\n") {
		return text
	}
	rest, _, fragment := strings.Cut(rest, "#")
	rest, query, hasQuery := strings.Cut(rest, "?")
	host, path, hasPath := strings.Cut(rest, "/")
	if at := strings.LastIndex(host, "@"); at >= 0 {
		host = redacted + host[at:]
	}
	text = scheme + "://" + host
	if hasPath {
		text += "/" + path
	}
	if hasQuery {
		text += "?" + redactQuery(query)
	}
	if fragment {
		text += "#" + redacted
	}
	return text
}

func redactQuery(query string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		switch name, value, named := strings.Cut(pair, "="); {
		case value != "":
			pairs[i] = name + "=" + redacted
		case !named && pair != "":
			pairs[i] = redacted
		}
	}
	return strings.Join(pairs, "&")
}

// longSegment is the length from which a segment of a callback URL is taken for
// a secret.
const longSegment = 16

// redactCallbackURL is redactURL for the URL of a webhook or a tool, whose path
// may hold a token.
func redactCallbackURL(raw, toolName string) string {
	text := redactURL(raw)
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return text
	}
	rest, query, hasQuery := strings.Cut(rest, "?")
	segments := strings.Split(rest, "/")
	for i, segment := range segments[1:] {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			plain = segment
		}
		if utf8.RuneCountInString(segment) >= longSegment && plain != toolName {
			segments[i+1] = redacted
		}
	}
	text = scheme + "://" + strings.Join(segments, "/")
	if hasQuery {
		text += "?" + query
	}
	return text
}

// redactJSON masks the secrets in a JSON value: texts under a telling name, at
// any depth, and the queries of URLs.
func redactJSON(doc json.RawMessage) json.RawMessage {
	if doc == nil {
		return nil
	}
	return appendRedacted(nil, doc, false)
}

func appendRedacted(out, value []byte, secret bool) []byte {
	switch jsonKind(value) {
	case "object":
		out = append(out, '{')
		first := true
		for m := range members(value) {
			if !first {
				out = append(out, ',')
			}
			first = false
			out = append(appendString(out, string(m.key)), ':')
			out = appendRedacted(out, m.value, secret || namesASecret(string(m.key)))
		}
		return append(out, '}')
	case "array":
		out = append(out, '[')
		first := true
		for element := range elements(value) {
			if !first {
				out = append(out, ',')
			}
			first = false
			out = appendRedacted(out, element, secret)
		}
		return append(out, ']')
	case "string":
		text := unquote(bytes.TrimSpace(value))
		if secret {
			return appendString(out, Secret(text).mask().Reveal())
		}
		if shown := redactURL(text); shown != text {
			return appendString(out, shown)
		}
	}
	return append(out, bytes.TrimSpace(value)...)
}

func namesASecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"key", "token", "secret", "password"}, func(word string) bool { return strings.Contains(name, word) })
}
