package heads

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The tests put these secrets wherever a secret can be. No output may show one
// of them.
const (
	canaryToken     = "canary-token-Zq7"
	canaryVoiceflow = "canary-voiceflow-Kx2"
	canaryOrg       = "canary-organisation-Wv9"
	canaryAddress   = "canary-address-Jm4"
	canarySettings  = "canary-settings-Py6"
	canaryToolPath  = "canary-toolpath-Rt3"
	canaryToolKey   = "canary-toolkey-Gd1"
	canaryShared    = "canary-shared-Lb8"
	canaryHookPath  = "canary-hookpath-Nc5"
	canaryHookQuery = "canary-hookquery-Fs0"
	canaryBody      = "canary-body-Hw2"
	canaryHeader    = "canary-header-Uj7"
	canaryPassword  = "canary-password-Qe4"
)

var canaries = []string{canaryToken, canaryVoiceflow, canaryOrg, canaryAddress, canarySettings, canaryToolPath, canaryToolKey,
	canaryShared, canaryHookPath, canaryHookQuery, canaryBody, canaryHeader, canaryPassword}

const (
	canaryHookURL   = "https://hooks.example.com/" + canaryHookPath + "?key=" + canaryHookQuery
	canaryPublicURL = "https://chat.example.com/MyOrg-1234/li-28379?api_key=" + canaryAddress

	canaryHook = `{"id":7,"headId":"` + testHead + `","webhookUrl":"` + canaryHookURL + `","sharedKey":"` + canaryShared + `","startConversation":true}`
	canaryHead = `{"id":"` + testHead + `","name":"Ada","voiceflowApiKey":"` + canaryVoiceflow + `","publicUrl":"` + canaryPublicURL + `",
		"organisation":{"id":"o","name":"Acme","apiKey":"` + canaryOrg + `"},"futureField":"` + canaryBody + `","headVisualId":"v","ttsProvider":"azure","ttsVoice":"a",
		"documentJsonDto":{"x":"` + canaryBody + `"},"iconConfig":"` + canaryBody + `","pluginOperationalModeConfig":{"key":"` + canaryBody + `"},
		"promptConfig":{"id":"p","system_prompt":"Be kind."},
		"conversationSettings":{"llm":{"api_key":"` + canarySettings + `"},"tools":[{"name":"find","description":"Finds.","auth":"` + canaryToolKey + `",
			"url":"https://tools.example.com/` + canaryToolPath + `/find","parameters":[{"name":"q","type":"string","description":"What.","x":"` + canaryToolKey + `"}]}]}}`
)

// verbs are all verbs of package fmt except %T, %p and %w, for which it ignores
// fmt.Formatter.
var verbs = []string{"%v", "%+v", "%#v", "%s", "%+s", "%q", "%+q", "%#q", "%x", "% x", "%#x", "%X", "%d", "%t", "%e", "%g", "%b", "%o", "%c", "%U", "%#U", "%20v"}

var handlers = map[string]func(io.Writer) slog.Handler{
	"text": func(w io.Writer) slog.Handler {
		return slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})
	},
	"JSON": func(w io.Writer) slog.Handler {
		return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})
	},
}

// traces returns the forms in which a canary can appear: as it is (quoting does
// not change it), in hexadecimal, as a list of bytes with any verb, in base64.
func traces(canary string) []string {
	raw := []byte(canary)
	forms := []string{canary, strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", raw), "[]byte{"), "}")}
	for _, verb := range verbs {
		forms = append(forms, strings.Trim(fmt.Sprintf(verb, raw), "[]"))
	}
	for shift := range 3 { // base64 depends on the position of a byte in its group of three
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + canary))
		forms = append(forms, encoded[4:len(encoded)-4])
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

var allTraces = func() map[string][]string {
	all := map[string][]string{}
	for _, canary := range canaries {
		all[canary] = traces(canary)
	}
	return all
}()

// canaryIn returns a canary that a text contains in any form, or "".
func canaryIn(shown string) string {
	for canary, forms := range allTraces {
		for _, form := range forms {
			if strings.Contains(shown, form) {
				return canary
			}
		}
	}
	return ""
}

func assertNoCanary(t testing.TB, shown, where string) {
	t.Helper()
	if canary := canaryIn(shown); canary != "" {
		assert.Fail(t, "a secret shows", "%s in %s: %s", canary, where, shown)
	}
}

// canaryIn must find the canaries in values that hide nothing.
func TestCanariesAreSeenWhereNothingHidesThem(t *testing.T) {
	type text struct{ Text string }
	type raw struct{ Raw json.RawMessage }
	for _, v := range []any{text{canaryBody}, raw{json.RawMessage(`"` + canaryBody + `"`)}} {
		for _, verb := range verbs {
			assert.Equal(t, canaryBody, canaryIn(fmt.Sprintf(verb, v)), "%s of %T", verb, v)
		}
		for name, handler := range handlers {
			var out bytes.Buffer
			slog.New(handler(&out)).Info("m", "v", v)
			assert.Equal(t, canaryBody, canaryIn(out.String()), "%s log of %T", name, v)
		}
	}
	for shift := range 3 {
		var out bytes.Buffer
		slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "v", []byte(strings.Repeat("a", shift)+canaryBody+"b"))
		assert.Equal(t, canaryBody, canaryIn(out.String()), out.String())
	}
}

// printsNoCanary prints a value with every verb, alone and inside other values.
func printsNoCanary(t testing.TB, v any) {
	t.Helper()
	typ := reflect.TypeOf(v)
	slice := reflect.Append(reflect.MakeSlice(reflect.SliceOf(typ), 0, 1), reflect.ValueOf(v))
	byName := reflect.MakeMap(reflect.MapOf(reflect.TypeFor[string](), typ))
	byName.SetMapIndex(reflect.ValueOf("k"), reflect.ValueOf(v))
	seen := map[string]bool{} // most verbs show the same
	for _, shown := range []any{v, slice.Interface(), byName.Interface(), []any{v}, struct{ Field any }{v}} {
		texts := []string{fmt.Sprint(shown), fmt.Sprintln(shown), fmt.Sprintf("%T", shown)}
		for _, verb := range verbs {
			texts = append(texts, fmt.Sprintf(verb, shown))
		}
		for i, text := range texts {
			if !seen[text] && canaryIn(text) != "" {
				assertNoCanary(t, text, fmt.Sprintf("print %d of a %T", i, shown))
				return
			}
			seen[text] = true
		}
	}
}

func logsNoCanary(t testing.TB, v any) {
	t.Helper()
	for name, handler := range handlers {
		var out bytes.Buffer
		logger := slog.New(handler(&out))
		logger.Info("m", "v", v, slog.Group("g", "v", v))
		logger.With("v", v).WithGroup("g").Info("m")
		assertNoCanary(t, out.String(), fmt.Sprintf("%s log of %T", name, v))
	}
}

// exportedTypes returns the names of all exported types of the package.
func exportedTypes(t testing.TB) []string {
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var names []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			general, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range general.Specs {
				if typ, ok := spec.(*ast.TypeSpec); ok && typ.Name.IsExported() {
					names = append(names, typ.Name.Name)
				}
			}
		}
	}
	require.Contains(t, names, "Client")
	slices.Sort(names)
	return names
}

// canaryOf reads a resource from a document that holds all canaries.
func canaryOf[T any, P proven[T]](t testing.TB, document string) *T {
	v := new(T)
	require.NoError(t, decodeAnswer([]byte(document), P(v)))
	return v
}

func canaryClient(t testing.TB, transport http.RoundTripper, opts ...Option) *Client {
	all := []Option{WithHTTPClient(&http.Client{Transport: transport}), WithRetryPolicy(RetryPolicy{MaxRetries: 1})}
	client, err := New(memoryURL, canaryToken, append(all, opts...)...)
	require.NoError(t, err)
	return client
}

// refusals returns the errors of requests that are refused before they are sent.
// Each was given a canary.
func refusals(t testing.TB) map[string]error {
	client := canaryClient(t, newScript(answer(200, canaryHead)))
	ctx := t.Context()
	tool := func(address string) error {
		return Tool{Name: "find", Description: "Finds.", URL: address}.Validate()
	}
	hook := func(address string) error {
		_, err := client.Webhooks.Create(ctx, WebhookSpec{HeadID: testHead, URL: address, Events: []EventType{EventStartConversation}})
		return err
	}
	update := func(u *HeadUpdate) error { err := client.Heads.Update(ctx, testHead, u); return err }
	address := func(raw string) error { _, err := ParseAccessURL(raw); return err }
	base := func(raw, token string) error { _, err := New(raw, token); return err }
	_, badHeadID := client.Heads.Get(ctx, canaryPublicURL)
	_, badDocument := HeadUpdateFromJSON([]byte(`{"id":"` + testHead + `","voiceflowApiKey":["` + canaryVoiceflow + `"],"name":5}`))
	_, badBase := AccessURL{}.WithBase("https://x.example.com?key=" + canaryHookQuery)
	badExtra := new(ConversationSettings).SetExtra("llm", json.RawMessage(`{"api_key":"`+canarySettings))
	return map[string]error{
		"token with a line feed":       base(memoryURL, canaryToken+"\n"),
		"token with Bearer":            base(memoryURL, "Bearer "+canaryToken),
		"base URL with password":       base("https://me:"+canaryPassword+"@api.example.com", canaryToken),
		"base URL with odd password":   base("https://me:a/"+canaryPassword+"@api.example.com", canaryToken),
		"base URL with query":          base("https://api.example.com?key="+canaryHookQuery, canaryToken),
		"base URL that does not parse": base("https://me:"+canaryPassword+"@api.example.com:x", canaryToken),
		"base URL and token swapped":   base(canaryToken, memoryURL),
		"http tool":                    tool("http://tools.example.com/" + canaryToolPath),
		"tool with password":           tool("https://me:" + canaryPassword + "@tools.example.com/"),
		"tool without host":            tool("https:///" + canaryToolPath),
		"tool with placeholder":        tool("https://tools.example.com/" + canaryToolPath + "/<TOKEN>"),
		"tool that does not parse":     tool("https://tools.example.com/" + canaryToolPath + "/%zz"),
		"tool with fragment":           tool("https://tools.example.com/" + canaryToolPath + "#x"),
		"http webhook":                 hook(strings.Replace(canaryHookURL, "https", "http", 1)),
		"webhook with fragment":        hook(canaryHookURL + "#x"),
		"webhook that does not parse":  hook(canaryHookURL + "\x00"),
		"webhook with password":        hook("https://me:" + canaryPassword + "@hooks.example.com"),
		"placeholder beside a key":     update(NewHeadUpdate().PublicURL("https://chat.example.com/a/b?x=" + canaryAddress + "&api_key=<PUBLIC_API_KEY>")),
		"key of the wrong type":        update(NewHeadUpdate().Set("voiceflowApiKey", []string{canaryVoiceflow})),
		"read-only key":                update(NewHeadUpdate().Set("organisation", map[string]string{"apiKey": canaryOrg})),
		"not JSON":                     update(NewHeadUpdate().Set("x", map[string]any{canaryBody: func() {}})),
		"address as a head id":         badHeadID,
		"document with a wrong type":   badDocument,
		"settings that are no JSON":    badExtra,
		"base with query":              badBase,
		"address of one part":          address("https://chat.example.com/MyOrg-1?api_key=" + canaryAddress),
		"address with password":        address("https://me:" + canaryPassword + "@chat.example.com/MyOrg-1/li-2?api_key=" + canaryAddress),
		"address of ftp":               address("ftp://chat.example.com/MyOrg-1/li-2?api_key=" + canaryAddress),
		"address that does not parse":  address("https://chat.example.com/%zz?api_key=" + canaryAddress),
	}
}

func TestNoRefusalShowsASecret(t *testing.T) {
	for name, err := range refusals(t) {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, err, ErrInvalid)
			printsNoCanary(t, err)
			logsNoCanary(t, err)
		})
	}
}

// Whatever goes wrong, no error, log or observer shows a secret.
func TestNoFailingCallShowsASecret(t *testing.T) {
	headers := []string{"Set-Cookie: s=" + canaryHeader, "X-Request-Id: " + canaryToken, "X-Correlation-Id: " + canaryToken}
	leaky := &url.Error{Op: "Post", URL: memoryURL + "/head-events?key=" + canaryHookQuery + "#" + canaryPassword, Err: fmt.Errorf("bearer %s at https://me:%s@proxy.example.com", canaryToken, canaryPassword)}
	steps := map[string][]step{
		"transport":      {fail(leaky)},
		"wrapped":        {fail(fmt.Errorf("proxy: %w", leaky))},
		"plain value":    {fail(textError(canaryToken))},
		"server error":   {answer(500, `{"message":"`+canaryToken+`","key":"`+canaryBody+`"}`, headers...)},
		"unauthorized":   {answer(401, canaryToken, headers...)},
		"redirect":       {answer(302, canaryBody, append(headers, "Location: https://me:"+canaryPassword+"@other.example.com/elsewhere?key="+canaryHookQuery)...)},
		"success":        {answer(200, canaryHook, headers...)},
		"head":           {answer(200, canaryHead, headers...)},
		"wrong types":    {answer(200, `{"id":["`+canaryBody+`"],"sharedKey":{"a":"`+canaryShared+`"},"name":{"`+canaryBody+`":1}}`, headers...)},
		"no shared key":  {answer(200, `{"key":"`+canaryBody+`"}`, headers...)},
		"text":           {answer(200, canaryBody, headers...)},
		"broken":         {answer(200, `{"sharedKey":"`+canaryShared, headers...)},
		"cut off":        {cutOff(503)},
		"503 then error": {answer(503, `{"message":"`+canaryToken+`","key":"`+canaryBody+`"}`, headers...), fail(leaky)},
	}
	for name, script := range steps {
		for methodName, call := range canaryCalls {
			t.Run(name+" "+methodName, func(t *testing.T) {
				var logged bytes.Buffer
				var attempts []Attempt
				client := canaryClient(t, newScript(script...), WithLogger(slog.New(handlers["JSON"](&logged))),
					WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { attempts = append(attempts, a) }}))
				if err := call(t.Context(), client); err != nil {
					printsNoCanary(t, err)
					printsNoCanary(t, fmt.Errorf("wrapped: %w", errors.Join(err, io.EOF)))
					logsNoCanary(t, err)
				}
				require.NotEmpty(t, attempts)
				for _, a := range attempts {
					printsNoCanary(t, a)
					logsNoCanary(t, a)
					if a.Err != nil {
						printsNoCanary(t, a.Err)
						logsNoCanary(t, a.Err)
					}
				}
				require.NotEmpty(t, logged.String())
				assertNoCanary(t, logged.String(), "the log of the client")
			})
		}
	}
}

// textError is an error without fields, since fmt prints fields as well.
type textError string

func (e textError) Error() string { return string(e) }

// canaryCalls are calls that send canaries wherever they can.
var canaryCalls = map[string]func(context.Context, *Client) error{
	"Heads.Get": getHead,
	"Heads.Update": func(ctx context.Context, c *Client) error {
		err := c.Heads.Update(ctx, testHead, NewHeadUpdate().VoiceflowAPIKey(canaryVoiceflow).PublicURL(canaryPublicURL))
		return err
	},
	"Webhooks.Create": func(ctx context.Context, c *Client) error {
		_, err := c.Webhooks.Create(ctx, WebhookSpec{HeadID: testHead, URL: canaryHookURL, Events: []EventType{EventStartConversation}})
		return err
	},
	"Webhooks.List": func(ctx context.Context, c *Client) error {
		_, err := c.Webhooks.List(ctx, testHead)
		return err
	},
	"Webhooks.Get": func(ctx context.Context, c *Client) error {
		_, err := c.Webhooks.Get(ctx, 7)
		return err
	},
	"Webhooks.Update": func(ctx context.Context, c *Client) error {
		err := c.Webhooks.Update(ctx, 7, NewWebhookUpdate().URL(canaryHookURL))
		return err
	},
	"Webhooks.Delete": func(ctx context.Context, c *Client) error { return c.Webhooks.Delete(ctx, 7) },
	"ConversationSettings.Replace": func(ctx context.Context, c *Client) error {
		settings := &ConversationSettings{Tools: []Tool{{Name: "find", Description: "Finds.", URL: "https://tools.example.com/" + canaryToolPath}}}
		if err := settings.SetExtra("llm", json.RawMessage(`{"api_key":"`+canarySettings+`"}`)); err != nil {
			return err
		}
		err := c.ConversationSettings.Replace(ctx, testHead, settings)
		return err
	},
}

// The error of a token source may contain the token that was refused.
func TestErrorsOfATokenSourceAreRedacted(t *testing.T) {
	client := sourceClient(t, newScript(answer(401, canaryToken)), func(_ context.Context, rejected string) (string, error) {
		if rejected == "" {
			return canaryToken, nil
		}
		return "", fmt.Errorf("token %s was revoked, see https://login.example.com?code=%s", rejected, canaryPassword)
	})
	err := getHead(t.Context(), client)
	require.ErrorIs(t, err, ErrUnauthorized)
	require.ErrorContains(t, err, "token [redacted] was revoked, see https://login.example.com")
	printsNoCanary(t, err)
	logsNoCanary(t, err)
}

func TestTokenBesideAnErrorOfItsSourceIsMasked(t *testing.T) {
	client := sourceClient(t, newScript(answer(200, headJSON)), func(context.Context, string) (string, error) {
		return canaryToken, errors.New("token " + canaryToken + " can't be stored")
	})
	err := getHead(t.Context(), client)
	require.ErrorContains(t, err, "nothing was sent: token source: token [redacted] can't be stored")
	printsNoCanary(t, err)
	logsNoCanary(t, err)
}
