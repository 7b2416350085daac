package walkers

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/davecgh/go-spew/spew"
	"github.com/google/go-cmp/cmp"
	"github.com/k0kubun/pp/v3"
	"github.com/kr/pretty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
)

const canary = "canary-4f8e1c"

// walkers print a value, or how it differs from another.
var walkers = map[string]func(value, other any) string{
	"testify": func(value, other any) string {
		var t recorder
		assert.Equal(&t, other, value)
		return t.text
	},
	"go-cmp": func(value, other any) string {
		return cmp.Diff(other, value, cmp.Exporter(func(reflect.Type) bool { return true }))
	},
	"kr/pretty":                   func(value, _ any) string { return pretty.Sprintf("%# v", value) },
	"kr/pretty's diff":            func(value, other any) string { return strings.Join(pretty.Diff(other, value), "\n") },
	"k0kubun/pp":                  func(value, _ any) string { return pp.Sprint(value) },
	"spew without methods":        func(value, _ any) string { return (&spew.ConfigState{DisableMethods: true, Indent: " "}).Sdump(value) },
	"spew's %#+v, no methods":     func(value, _ any) string { return (&spew.ConfigState{DisableMethods: true}).Sprintf("%#+v", value) },
	"fmt, as a check of the test": func(value, _ any) string { return fmt.Sprintf("%+v", value) },
}

// recorder keeps what a failed assertion prints.
type recorder struct{ text string }

func (r *recorder) Errorf(format string, args ...any) { r.text += fmt.Sprintf(format, args...) }

// forms are the canary as texts, bytes and numbers.
func forms() []string {
	all := []string{canary, canary[:8], hex.EncodeToString([]byte(canary))}
	for _, format := range []string{"%d", "0x%x", "%02x"} {
		for _, between := range []string{" ", ", ", ","} {
			var numbers []string
			for _, b := range []byte(canary)[:6] {
				numbers = append(numbers, fmt.Sprintf(format, b))
			}
			all = append(all, strings.Join(numbers, between))
		}
	}
	return all
}

const document = `{"id":"3f2b8c1e-5d4a-4e6f-9a7b-0c1d2e3f4a5b","voiceflowApiKey":"` + canary + `",
	"publicUrl":"https://chat.example.com/a/b?api_key=` + canary + `","organisation":{"apiKey":"` + canary + `"},
	"pluginOperationalModeConfig":{"token":"` + canary + `"},"more":"` + canary + `",
	"conversationSettings":{"tools":[{"name":"a","description":"b","url":"https://example.com/` + canary + canary + `","key":"` + canary + `"}],"model":{"api_key":"` + canary + `"}}}`

func TestLibrariesThatWalkMemoryShowNoSecret(t *testing.T) {
	var head heads.Head
	require.NoError(t, heads.NewRaw([]byte(document)).Decode(&head))
	require.Equal(t, canary, head.VoiceflowAPIKey.Reveal())
	head.ConversationSettings.Tools[0].URL = "" // a URL is no secret in itself
	event, err := heads.ParseEvent([]byte(`{"event_type":"x","head_id":"a","session_id":"b","more":"` + canary + `"}`))
	require.NoError(t, err)
	access, err := heads.ParseAccessURL("https://chat.example.com/a/b?api_key=" + canary)
	require.NoError(t, err)
	secret := heads.NewSecret(canary)
	type mine struct {
		secret heads.Secret
		raw    *heads.Raw
	}
	raw := heads.NewRaw([]byte(canary))
	for name, pair := range map[string][2]any{
		"Secret":               {secret, heads.NewSecret("another")},
		"Raw":                  {raw, heads.NewRaw([]byte("another"))},
		"in fields of mine":    {mine{secret, &raw}, mine{}},
		"in a map":             {map[heads.Secret]heads.Raw{secret: raw}, map[heads.Secret]heads.Raw{}},
		"Head":                 {head, heads.Head{}},
		"a pointer to a Head":  {&head, &heads.Head{}},
		"Webhook":              {heads.Webhook{SharedKey: secret}, heads.Webhook{}},
		"Event":                {*event, heads.Event{}},
		"AccessURL":            {access, heads.AccessURL{}},
		"HeadUpdate":           {heads.NewHeadUpdate().VoiceflowAPIKey(canary), heads.NewHeadUpdate()},
		"Error":                {heads.Error{Body: raw}, heads.Error{}},
		"ConversationSettings": {*head.ConversationSettings, heads.ConversationSettings{}},
	} {
		for walker, show := range walkers {
			t.Run(name+" with "+walker, func(t *testing.T) {
				shown := show(pair[0], pair[1])
				require.NotEmpty(t, shown)
				for _, form := range forms() {
					assert.NotContains(t, shown, form)
				}
			})
		}
	}
}

// The test would find a secret that is held as it is.
func TestWalkersShowWhatIsHeldAsText(t *testing.T) {
	type open struct{ text string }
	for walker, show := range walkers {
		assert.Contains(t, show(open{canary}, open{}), canary, walker)
	}
}
