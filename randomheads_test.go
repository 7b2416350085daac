package heads_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// randomHeads generates heads and differences between them.
type randomHeads struct{ *rand.Rand }

func (r randomHeads) text() string {
	return [...]string{"", "a", "b", "A text, with \"quotes\", <b> & \\", "ünï\u2028cödé 😀", "strings attached", "line\nbreak"}[r.IntN(7)]
}

func (r randomHeads) voice() string { return [...]string{"v1", "v2", "v 3"}[r.IntN(3)] }

func (r randomHeads) list() []string {
	n := r.IntN(5)
	if n == 4 {
		return nil
	}
	list := []string{}
	for range n {
		list = append(list, r.text())
	}
	return list
}

func (r randomHeads) words() map[string]string {
	list := r.list()
	if list == nil {
		return nil
	}
	words := map[string]string{}
	for _, word := range list {
		words[word] = r.text()
	}
	return words
}

func (r randomHeads) nullableText() *string {
	if r.IntN(3) == 0 {
		return nil
	}
	text := r.text()
	return &text
}

func (r randomHeads) config() json.RawMessage {
	return [...]json.RawMessage{nil, json.RawMessage(`{}`), json.RawMessage(`{"a":1.0,"b":[null]}`), json.RawMessage(`{"a":12345678901234567890}`)}[r.IntN(4)]
}

// edit sets each writable field to another random value with probability 1/2.
func (r randomHeads) edit(h *heads.Head) {
	for _, change := range []func(){
		func() { h.Name = r.text() }, func() { h.Alias = r.text() }, func() { h.Language = r.text() },
		func() { h.LanguageSpeechRecognition = r.text() }, func() { h.TTSProvider = r.voice() }, func() { h.TTSVoice = r.voice() },
		func() { h.OperationMode = heads.OperationMode(r.text()) }, func() { h.OCProvider = r.text() },
		func() { h.PromptConfig.SystemPrompt = r.text() }, func() { h.Greetings = r.text() },
		func() { h.VoiceflowAPIKey = secret(r.nullableText()) }, func() { h.IsRandomSuggestions = r.IntN(2) == 0 },
		func() { h.Phrases = r.list() }, func() { h.Suggestions = r.list() }, func() { h.CustomWords = r.words() },
		func() { h.PublicURL = heads.NewSecret("https://chat.example.com/" + r.voice()[:2]) }, func() { h.FileURL = r.nullableText() },
		func() { h.PluginOperationalModeConfig = heads.NewRaw(r.config()) }, func() { h.SemanticThreshold = r.Float64() },
	} {
		if r.IntN(2) == 0 {
			change()
		}
	}
}

// fields returns the values of the writable fields as the service stores them.
func fields(h *heads.Head) map[string]any {
	prompt := ""
	if h.PromptConfig != nil {
		prompt = h.PromptConfig.SystemPrompt
	}
	return map[string]any{
		"name": h.Name, "alias": h.Alias, "language": h.Language, "languageSpeechRecognition": h.LanguageSpeechRecognition,
		"ttsProvider": h.TTSProvider, "ttsVoice": h.TTSVoice, "operationMode": string(h.OperationMode), "ocProvider": h.OCProvider,
		"promptConfig": prompt, "greetings": h.Greetings, "voiceflowApiKey": shown(revealed(h.VoiceflowAPIKey)),
		"isRandomSuggestions": h.IsRandomSuggestions, "phrases": h.Phrases, "suggestions": h.Suggestions, "customWords": h.CustomWords,
		"publicUrl": h.PublicURL.Reveal(), "fileUrl": shown(h.FileURL), "pluginOperationalModeConfig": config(h.PluginOperationalModeConfig.Bytes()),
		"semanticThreshold": h.SemanticThreshold,
	}
}

func secret(text *string) *heads.Secret {
	if text == nil {
		return nil
	}
	s := heads.NewSecret(*text)
	return &s
}

func revealed(s *heads.Secret) *string {
	if s == nil {
		return nil
	}
	text := s.Reveal()
	return &text
}

func shown(text *string) string {
	if text == nil {
		return "null"
	}
	return fmt.Sprintf("%q", *text)
}

func config(raw json.RawMessage) string {
	if raw == nil {
		return "null"
	}
	return string(raw)
}

// differing returns the fields that must be sent. A list or map that became nil
// is treated as empty, since the contract does not allow null for it.
func differing(before, after *heads.Head) map[string]bool {
	was, is := fields(before), fields(after)
	names := map[string]bool{}
	for name := range was {
		if !assert.ObjectsAreEqual(was[name], is[name]) && !becameNil(was[name], is[name]) {
			names[name] = true
		}
	}
	if names["ttsProvider"] || names["ttsVoice"] {
		names["ttsProvider"], names["ttsVoice"] = true, true
	}
	return names
}

func becameNil(was, is any) bool {
	switch is := is.(type) {
	case []string:
		return is == nil && len(was.([]string)) == 0
	case map[string]string:
		return is == nil && len(was.(map[string]string)) == 0
	}
	return false
}

// held returns the head as the service stores it after an update: without nil
// where the contract does not allow null.
func held(before, after *heads.Head) map[string]any {
	values := fields(after)
	for name, value := range values {
		switch value := value.(type) {
		case []string:
			if value == nil && len(fields(before)[name].([]string)) > 0 {
				values[name] = []string{}
			} else if value == nil {
				values[name] = fields(before)[name]
			}
		case map[string]string:
			if value == nil && len(fields(before)[name].(map[string]string)) > 0 {
				values[name] = map[string]string{}
			} else if value == nil {
				values[name] = fields(before)[name]
			}
		}
	}
	return values
}

// seed adds a random head to the emulator and reads it.
func (r randomHeads) seed(t *testing.T, srv *headstest.Server, client *heads.Client) *heads.Head {
	t.Helper()
	random := &heads.Head{TTSProvider: "v1", TTSVoice: "v2", PublicURL: heads.NewSecret("https://chat.example.com"), PromptConfig: &heads.PromptConfig{}}
	r.edit(random)
	id := srv.AddHead(headstest.Head{Fields: map[string]any{
		"name": random.Name, "alias": random.Alias, "language": random.Language, "languageSpeechRecognition": random.LanguageSpeechRecognition,
		"ttsProvider": random.TTSProvider, "ttsVoice": random.TTSVoice, "operationMode": random.OperationMode, "ocProvider": random.OCProvider,
		"promptConfig": map[string]string{"id": "p-1", "system_prompt": random.PromptConfig.SystemPrompt}, "greetings": random.Greetings,
		"voiceflowApiKey": revealed(random.VoiceflowAPIKey), "isRandomSuggestions": random.IsRandomSuggestions, "phrases": random.Phrases,
		"suggestions": random.Suggestions, "customWords": random.CustomWords, "publicUrl": random.PublicURL.Reveal(), "fileUrl": random.FileURL,
		"pluginOperationalModeConfig": json.RawMessage(random.PluginOperationalModeConfig.Bytes()), "semanticThreshold": random.SemanticThreshold,
	}})
	head, err := client.Heads.Get(t.Context(), id)
	require.NoError(t, err)
	return head
}

// sentFields returns the names in the body of the last update, without id.
func sentFields(t *testing.T, srv *headstest.Server) map[string]bool {
	t.Helper()
	sent := srv.Requests()
	i := slices.IndexFunc(sent, func(r headstest.Request) bool { return r.Path == "/head/update" })
	require.GreaterOrEqual(t, i, 0, "an update was sent")
	var body map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(sent[i].Body, &body))
	require.Contains(t, body, "id")
	names := map[string]bool{}
	for name := range body {
		names[name] = name != "id"
	}
	delete(names, "id")
	return names
}

const randomPairs = 150

func TestModifyTurnsOneHeadIntoAnother(t *testing.T) {
	srv := headstest.NewServer(headstest.WithSeed(2))
	defer srv.Close()
	client := srv.Client()
	for seed := range uint64(randomPairs) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			srv.Reset()
			r := randomHeads{rand.New(rand.NewPCG(seed, 1))}
			before := r.seed(t, srv, client)
			var after *heads.Head
			modified, err := client.Heads.Modify(t.Context(), before.ID, func(h *heads.Head) error {
				r.edit(h)
				after = h
				return nil
			})
			require.NoError(t, err)
			assert.Same(t, after, modified)
			if want := differing(before, after); len(want) > 0 {
				assert.Equal(t, want, sentFields(t, srv))
			} else {
				assert.Len(t, srv.Requests(), 2, "two reads and no update")
			}
			got, err := client.Heads.Get(t.Context(), before.ID)
			require.NoError(t, err)
			assert.Equal(t, held(before, after), fields(got))
		})
	}
}

// HeadUpdateFromJSON makes the other head the same.
func TestHeadUpdateFromJSONCopiesAHead(t *testing.T) {
	srv := headstest.NewServer(headstest.WithSeed(3))
	defer srv.Close()
	client := srv.Client()
	for seed := range uint64(50) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			srv.Reset()
			r := randomHeads{rand.New(rand.NewPCG(seed, 2))}
			source := r.seed(t, srv, client)
			u, err := heads.HeadUpdateFromJSON(source.Raw.Bytes())
			require.NoError(t, err)
			target := r.seed(t, srv, client)
			require.NoError(t, client.Heads.Update(t.Context(), target.ID, u))
			got, err := client.Heads.Get(t.Context(), target.ID)
			require.NoError(t, err)
			want := *source
			want.PublicURL = target.PublicURL // the service assigns it
			// Null is not allowed for these, so they can't be sent.
			for _, list := range []struct{ want, target *[]string }{{&want.Phrases, &target.Phrases}, {&want.Suggestions, &target.Suggestions}} {
				if *list.want == nil {
					*list.want = *list.target
				}
			}
			if want.CustomWords == nil {
				want.CustomWords = target.CustomWords
			}
			assert.Equal(t, fields(&want), fields(got))
		})
	}
}
