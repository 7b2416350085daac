package heads

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headsapi/heads-go/internal/check"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBaseURL(t *testing.T) {
	insecure := []Option{WithInsecureHTTP()}
	for name, row := range map[string]struct {
		url  string
		opts []Option
		base string // what requests go to; "" when it is refused
		says string
	}{
		"https":                   {url: "https://api.example.com", base: "https://api.example.com"},
		"upper case":              {url: "HTTPS://api.example.com", base: "https://api.example.com"},
		"slash at the end":        {url: "https://api.example.com/", base: "https://api.example.com"},
		"prefix":                  {url: "https://api.example.com/a/b", base: "https://api.example.com/a/b"},
		"prefix with a slash":     {url: "https://api.example.com/a/b//", base: "https://api.example.com/a/b"},
		"prefix with an escape":   {url: "https://api.example.com/a%2Fb", base: "https://api.example.com/a%2Fb"},
		"port":                    {url: "https://api.example.com:8443/v1", base: "https://api.example.com:8443/v1"},
		"http to localhost":       {url: "http://localhost:8080", base: "http://localhost:8080"},
		"escaped path with slash": {url: "https://api.example.com/a%2Fb/", base: "https://api.example.com/a%2Fb"},
		"http with insecure":      {url: "http://api.example.com", opts: insecure, base: "http://api.example.com"},
		"http":                    {url: "http://api.example.com", says: "plain http"},
		"user and password":       {url: "https://me:hush-hush@api.example.com", says: `"https://api.example.com" carries a user name`},
		"broken with password":    {url: "https://me:hush-hush@api.example.com:port", says: "can't be parsed"},
		"token in its place":      {url: "hush-hush.abc.def", says: "is not absolute"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newScript(answer(200, headJSON))
			client, err := New(row.url, pathToken, append(row.opts, WithHTTPClient(&http.Client{Transport: tr}))...)
			if row.base == "" {
				invalid := As[*InvalidError](t, err)
				assert.Nil(t, client)
				assert.Equal(t, "New", invalid.Operation)
				assert.Equal(t, "base URL", invalid.Field)
				assert.Contains(t, invalid.Problem+"; "+invalid.Remedy, row.says)
				assert.NotContains(t, err.Error(), "hush-hush")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, row.base, client.BaseURL())
			require.NoError(t, getHead(t.Context(), client))
			assert.Equal(t, row.base+"/head/"+testHead, tr.requests[0].URL.String())
		})
	}
}

func TestToken(t *testing.T) {
	for name, row := range map[string]struct{ token, says string }{
		"plain":             {token: "abc.DEF-123_~+/="},
		"the longest":       {token: strings.Repeat("a", check.MaxToken)},
		"empty":             {token: "", says: "is blank"},
		"too long":          {token: strings.Repeat("a", check.MaxToken+1), says: "want at most"},
		"with Bearer":       {token: "Bearer hush-hush", says: `starts with "Bearer "`},
		"with bearer":       {token: "bearer hush-hush", says: `starts with "Bearer "`},
		"line feed":         {token: "hush-hush\n", says: "line break"},
		"header injection":  {token: "hush-hush\r\nX-Admin: 1", says: "line break"},
		"space":             {token: "hush hush-hush", says: "a space"},
		"blank":             {token: " ", says: "is blank"},
		"tab":               {token: "hush-hush\t", says: "another character"},
		"NUL":               {token: "hush-hush\x00", says: "another character"},
		"DEL":               {token: "hush-hush\x7f", says: "another character"},
		"letters of others": {token: "hush-hushé", says: "another character"},
		"placeholder":       {token: "<ACCESS_TOKEN>", says: "placeholder"},
		"the word string":   {token: "string", says: "placeholder"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newScript(answer(200, headJSON))
			client, err := New(memoryURL, row.token, WithHTTPClient(&http.Client{Transport: tr}))
			if row.says != "" {
				invalid := As[*InvalidError](t, err)
				assert.Equal(t, "token", invalid.Field)
				assert.Contains(t, invalid.Problem+"; "+invalid.Remedy, row.says)
				assert.NotContains(t, err.Error(), "hush-hush")
				return
			}
			require.NoError(t, err)
			require.NoError(t, getHead(t.Context(), client))
			assert.Equal(t, []string{"Bearer " + row.token}, tr.requests[0].Header["Authorization"])
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, row := range map[string]struct {
		opt   Option
		field string
	}{
		"nil option":             {nil, "option"},
		"nil client":             {WithHTTPClient(nil), "WithHTTPClient"},
		"nil source":             {WithTokenSource(nil), "WithTokenSource"},
		"retries below 0":        {WithRetryPolicy(RetryPolicy{MaxRetries: -1}), "WithRetryPolicy"},
		"MinWait below 0":        {WithRetryPolicy(RetryPolicy{MinWait: -1}), "WithRetryPolicy"},
		"MaxWait below MinWait":  {WithRetryPolicy(RetryPolicy{MinWait: 2, MaxWait: 1}), "WithRetryPolicy"},
		"time-out of 0":          {WithAttemptTimeout(0), "WithAttemptTimeout"},
		"time-out below 0":       {WithAttemptTimeout(-1), "WithAttemptTimeout"},
		"nil logger":             {WithLogger(nil), "WithLogger"},
		"application, no name":   {WithApplication("", "1"), "WithApplication"},
		"application, space":     {WithApplication("my app", "1"), "WithApplication"},
		"application, slash":     {WithApplication("my/app", ""), "WithApplication"},
		"application, injection": {WithApplication("app", "1\r\nX: y"), "WithApplication"},
		"application, letters":   {WithApplication("äpp", "1"), "WithApplication"},
		"no access URL":          {WithAccessBases("", ""), "WithAccessBases"},
		"chat URL without host":  {WithAccessBases("https://", ""), "chat URL"},
		"stream URL with query":  {WithAccessBases("", "https://stream.example.com?a=b"), "stream URL"},
		"rate of 0":              {WithRateLimit(0, 1), "WithRateLimit"},
		"rate below 0":           {WithRateLimit(-1, 1), "WithRateLimit"},
		"rate without burst":     {WithRateLimit(1, 0), "WithRateLimit"},
		"token beside a source":  {WithTokenSource(fixedSource("x")), "token"},
		"no provider":            {WithStreamingProviders(), "WithStreamingProviders"},
		"blank provider":         {WithStreamingProviders("azure", " "), "WithStreamingProviders"},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := New(memoryURL, pathToken, row.opt)
			assert.Nil(t, client)
			invalid := As[*InvalidError](t, err)
			assert.Equal(t, "New", invalid.Operation)
			assert.Equal(t, row.field, invalid.Field)
			assert.NotEmpty(t, invalid.Problem+"; "+invalid.Remedy)
		})
	}
}

func TestNewReportsAllFaultsTogether(t *testing.T) {
	_, err := New("ftp://api.example.com", "", WithAttemptTimeout(-1), WithLogger(nil), WithAccessBases("chat", "stream"))
	require.ErrorIs(t, err, ErrInvalid)
	for _, field := range []string{"base URL", "token", "WithAttemptTimeout", "WithLogger", "chat URL", "stream URL"} {
		assert.Contains(t, err.Error(), "heads: New: "+field+" ")
	}
}

func TestHTTPClientIsCopiedAndNeverChanged(t *testing.T) {
	tr, other := newScript(answer(200, headJSON)), newScript(answer(200, headJSON))
	hc := &http.Client{Transport: tr, Timeout: time.Minute}
	client := Must(New(memoryURL, pathToken, WithHTTPClient(hc)))(t)
	assert.Equal(t, &http.Client{Transport: tr, Timeout: time.Minute}, hc)
	hc.Transport = other
	require.NoError(t, getHead(t.Context(), client))
	assert.Equal(t, 1, tr.sent())
	assert.Equal(t, 0, other.sent())
}

func TestTimeoutLimitsEachAttempt(t *testing.T) {
	for name, row := range map[string]struct {
		client time.Duration // of the http.Client
		option time.Duration // of WithAttemptTimeout
		want   time.Duration
	}{
		"neither":        {0, 0, 30 * time.Second},
		"option":         {0, 5 * time.Second, 5 * time.Second},
		"client":         {3 * time.Second, 0, 3 * time.Second},
		"client, long":   {2 * time.Minute, 0, 2 * time.Minute},
		"client shorter": {3 * time.Second, 5 * time.Second, 3 * time.Second},
		"option shorter": {2 * time.Minute, 5 * time.Second, 5 * time.Second},
	} {
		for where, step := range map[string]step{"answer": hang, "body": hangInBody} {
			Bubble(t, name+", "+where, func(t *testing.T) {
				tr := newScript(step, step, answer(200, headJSON))
				opts := []Option{WithHTTPClient(&http.Client{Transport: tr, Timeout: row.client})}
				if row.option > 0 {
					opts = append(opts, WithAttemptTimeout(row.option))
				}
				client := newTestClient(t, memoryURL, tr, opts...)
				start := time.Now()
				require.NoError(t, getHead(t.Context(), client), "an attempt that took too long is retried")
				assert.Equal(t, 2*row.want, time.Since(start).Truncate(time.Microsecond))
			})
		}
	}
}

func TestCookieJarIsKept(t *testing.T) {
	jar := Must(cookiejar.New(nil))(t)
	tr := newScript(
		answer(200, headJSON, "Set-Cookie: session=one"),
		answer(503, ""), answer(200, headJSON, "Set-Cookie: session=two"), answer(200, headJSON),
	)
	client := newTestClient(t, memoryURL, tr, WithHTTPClient(&http.Client{Transport: tr, Jar: jar}))
	for range 3 {
		require.NoError(t, getHead(t.Context(), client))
	}
	var cookies []string
	for _, r := range tr.requests {
		cookies = append(cookies, r.Header.Get("Cookie"))
	}
	assert.Equal(t, []string{"", "session=one", "session=one", "session=two"}, cookies, "a retry sends a cookie once")
}

func TestCheckRedirectIsIgnored(t *testing.T) {
	tr := newScript(answer(302, "", "Location: https://other.example.com/"))
	client := newTestClient(t, memoryURL, tr, WithHTTPClient(&http.Client{
		Transport:     tr,
		CheckRedirect: func(*http.Request, []*http.Request) error { panic("asked about a redirect") },
	}))
	failure := As[*Error](t, getHead(t.Context(), client))
	assert.Equal(t, 302, failure.StatusCode)
	assert.Equal(t, 1, tr.sent())
}

func TestApplicationWithoutAVersion(t *testing.T) {
	tr := newScript(answer(200, headJSON))
	require.NoError(t, getHead(t.Context(), newTestClient(t, memoryURL, tr, WithApplication("kiosk", ""))))
	assert.Equal(t, []string{"kiosk heads-go/" + Version}, tr.requests[0].Header["User-Agent"])
}

func TestNewFromEnv(t *testing.T) {
	source := WithTokenSource(fixedSource("from-source"))
	for name, row := range map[string]struct {
		base, token, chat, stream string
		opts                      []Option
		auth                      string   // of the request, when there is one
		wantChat, wantStream      string   // of the client
		says                      []string // all of them in the error
	}{
		"base and token":      {base: memoryURL, token: "abc", auth: "Bearer abc"},
		"token source":        {base: memoryURL, opts: []Option{source}, auth: "Bearer from-source"},
		"both tokens":         {base: memoryURL, token: "abc", opts: []Option{source}, says: []string{"beside a token source"}},
		"access URLs":         {base: memoryURL, token: "abc", chat: "https://chat.example.com/", stream: "https://stream.example.com", auth: "Bearer abc", wantChat: "https://chat.example.com", wantStream: "https://stream.example.com"},
		"chat URL alone":      {base: memoryURL, token: "abc", chat: "https://chat.example.com", auth: "Bearer abc", wantChat: "https://chat.example.com"},
		"option over env":     {base: memoryURL, token: "abc", chat: "https://chat.example.com", opts: []Option{WithAccessBases("https://mine.example.com", "")}, auth: "Bearer abc", wantChat: "https://mine.example.com"},
		"nothing":             {says: []string{"HEADS_BASE_URL is not set", "HEADS_TOKEN is not set"}},
		"no base":             {token: "abc", says: []string{"HEADS_BASE_URL is not set"}},
		"no token":            {base: memoryURL, says: []string{"HEADS_TOKEN is not set"}},
		"bad base":            {base: "api.example.com", token: "abc", says: []string{"base URL is not absolute"}},
		"bad chat URL":        {base: memoryURL, token: "abc", chat: "chat", says: []string{"chat URL "}},
		"nothing, bad option": {opts: []Option{WithLogger(nil)}, says: []string{"HEADS_BASE_URL", "HEADS_TOKEN", "WithLogger"}},
		"bad option":          {base: memoryURL, token: "abc", opts: []Option{nil}, says: []string{"option is nil"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HEADS_BASE_URL", row.base)
			t.Setenv("HEADS_TOKEN", row.token)
			t.Setenv("HEADS_CHAT_URL", row.chat)
			t.Setenv("HEADS_STREAM_URL", row.stream)
			tr := newScript(answer(200, headJSON))
			client, err := NewFromEnv(append(row.opts, WithHTTPClient(&http.Client{Transport: tr}))...)
			if row.says != nil {
				require.ErrorIs(t, err, ErrInvalid)
				assert.Nil(t, client)
				for _, text := range row.says {
					assert.Contains(t, err.Error(), text)
				}
				return
			}
			require.NoError(t, err)
			require.NoError(t, getHead(t.Context(), client))
			assert.Equal(t, row.auth, tr.requests[0].Header.Get("Authorization"))
			assert.Equal(t, []string{row.wantChat, row.wantStream}, accessBases(t, client))
		})
	}
}

// accessBases returns the bases of a client's access URLs, for legacy and for streaming mode.
// "" stands for that of the head itself.
func accessBases(t *testing.T, client *Client) (bases []string) {
	const own = "https://own.example.com"
	for _, streaming := range []bool{false, true} {
		address := Must(client.AccessURL(&Head{PublicURL: NewSecret(own + "/Org-1/li-2?api_key=k"), VideoStreaming: streaming}))(t)
		bases = append(bases, strings.TrimPrefix(address.Base, own))
	}
	return bases
}

// streamingProviders returns which of some providers can stream.
func streamingProviders(client *Client) (found []string) {
	for _, provider := range []string{"acme", "azure", "elevenlabs", "google"} {
		if client.Heads.providerFault(provider, ConvertOptions{}) == nil {
			found = append(found, provider)
		}
	}
	return found
}

// NewFromEnv applies its options twice, and an option may be kept for several
// clients.
func TestOptionsCanBeAppliedAgain(t *testing.T) {
	var logged bytes.Buffer
	observed := 0
	rows := map[string]struct {
		opt    Option
		answer step
		effect func(*testing.T, *Client, *script) any
		want   any
	}{
		"WithHTTPClient": {WithHTTPClient(&http.Client{Timeout: time.Minute}), hang, func(t *testing.T, c *Client, _ *script) any {
			return strings.Contains(postHook(t.Context(), c).Error(), "no whole answer within 1m0s")
		}, true},
		"WithTokenSource": {WithTokenSource(fixedSource("from-source")), answer(200, headJSON), func(t *testing.T, c *Client, tr *script) any {
			require.NoError(t, getHead(t.Context(), c))
			return tr.requests[0].Header.Get("Authorization")
		}, "Bearer from-source"},
		"WithRetryPolicy": {WithRetryPolicy(RetryPolicy{MaxRetries: 7}), answer(500, ""), func(t *testing.T, c *Client, tr *script) any {
			require.Error(t, getHead(t.Context(), c))
			return tr.sent()
		}, 8},
		"WithAttemptTimeout": {WithAttemptTimeout(7 * time.Second), hang, func(t *testing.T, c *Client, _ *script) any {
			return strings.Contains(postHook(t.Context(), c).Error(), "no whole answer within 7s")
		}, true},
		"WithRateLimit": {WithRateLimit(7, 3), answer(200, headJSON), func(t *testing.T, c *Client, _ *script) any {
			start := time.Now()
			for range 10 {
				require.NoError(t, getHead(t.Context(), c))
			}
			return time.Since(start).Round(time.Millisecond)
		}, time.Second},
		"WithLogger": {WithLogger(slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))), answer(200, headJSON), func(t *testing.T, c *Client, _ *script) any {
			logged.Reset()
			require.NoError(t, getHead(t.Context(), c))
			return strings.Count(logged.String(), "heads: attempt")
		}, 1},
		"WithObserver": {WithObserver(Observer[Attempt]{End: func(context.Context, Attempt) { observed++ }}), answer(200, headJSON), func(t *testing.T, c *Client, _ *script) any {
			before := observed
			require.NoError(t, getHead(t.Context(), c))
			return observed - before
		}, 1},
		"WithApplication": {WithApplication("kiosk", "2.1.0-rc.1+5"), answer(200, headJSON), func(t *testing.T, c *Client, tr *script) any {
			require.NoError(t, getHead(t.Context(), c))
			return tr.requests[0].Header.Get("User-Agent")
		}, "kiosk/2.1.0-rc.1+5 heads-go/" + Version},
		"WithAccessBases": {WithAccessBases("https://a.example.com/", "https://b.example.com"), nil, func(t *testing.T, c *Client, _ *script) any {
			return accessBases(t, c)
		}, []string{"https://a.example.com", "https://b.example.com"}},
		"WithStreamingProviders": {WithStreamingProviders("Acme"), nil, func(t *testing.T, c *Client, _ *script) any {
			return streamingProviders(c)
		}, []string{"acme"}},
		"WithInsecureHTTP": {WithInsecureHTTP(), nil, func(_ *testing.T, c *Client, _ *script) any { return c.BaseURL() }, "http://api.example.com"},
	}
	api := Must(os.ReadFile("testdata/api.txt"))(t)
	var named []string
	for line := range strings.Lines(string(api)) {
		if name, ok := strings.CutPrefix(line, "heads: func With"); ok && strings.HasSuffix(name, " Option\n") {
			named = append(named, "With"+name[:strings.Index(name, "(")])
		}
	}
	assert.ElementsMatch(t, named, slices.Collect(maps.Keys(rows)), "a row for every option")
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			base, token := memoryURL, pathToken
			switch name {
			case "WithTokenSource":
				token = ""
			case "WithInsecureHTTP":
				base = "http://api.example.com"
			}
			t.Setenv("HEADS_BASE_URL", base)
			t.Setenv("HEADS_TOKEN", token)
			t.Setenv("HEADS_CHAT_URL", "")
			t.Setenv("HEADS_STREAM_URL", "")
			synctest.Test(t, func(t *testing.T) {
				for range 3 {
					tr := newScript(row.answer)
					given := http.DefaultTransport
					http.DefaultTransport = tr
					client := Must(New(base, token, row.opt))(t)
					fromEnv, err := NewFromEnv(row.opt)
					http.DefaultTransport = given
					require.NoError(t, err)
					assert.Equal(t, row.want, row.effect(t, client, tr))
					tr.requests, tr.bodies = nil, nil
					assert.Equal(t, row.want, row.effect(t, fromEnv, tr))
				}
			})
		})
	}
}

func TestNewDoesNotReadTheEnvironment(t *testing.T) {
	t.Setenv("HEADS_BASE_URL", "https://env.example.com")
	t.Setenv("HEADS_TOKEN", "from-env")
	t.Setenv("HEADS_CHAT_URL", "https://chat.example.com")
	_, err := New("", "")
	require.ErrorContains(t, err, "base URL is blank")
	require.ErrorContains(t, err, "token is blank")
	client := Must(New(memoryURL, pathToken))(t)
	assert.Equal(t, []string{"", ""}, accessBases(t, client))
}

func TestStreamingProviders(t *testing.T) {
	client := Must(New(memoryURL, pathToken))(t)
	assert.Equal(t, []string{"azure", "elevenlabs"}, streamingProviders(client))
	client = Must(New(memoryURL, pathToken, WithStreamingProviders("Acme", "azure")))(t)
	assert.Equal(t, []string{"acme", "azure"}, streamingProviders(client))
}

func TestConstructorMakesNoCall(t *testing.T) {
	tr := newScript(answer(200, ""))
	asked := false
	Must(New(memoryURL, "", WithHTTPClient(&http.Client{Transport: tr}), WithLogger(slog.New(slog.DiscardHandler)),
		WithTokenSource(func(context.Context, string) (string, error) { asked = true; return pathToken, nil })))(t)
	assert.Equal(t, 0, tr.sent())
	assert.False(t, asked)
}

func fixedSource(token string) TokenSource {
	return func(context.Context, string) (string, error) { return token, nil }
}

// tokens is a source that returns a new token for each call: t1, t2 …
type tokens struct {
	mu    sync.Mutex
	asked []string // the rejected token of each call
}

func (s *tokens) next(_ context.Context, rejected string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, rejected)
	return fmt.Sprintf("t%d", len(s.asked)), nil
}

// accepting is a step that answers 401 unless the token is one of these.
func accepting(list ...string) step {
	return func(r *http.Request) (*http.Response, error) {
		for _, token := range list {
			if r.Header.Get("Authorization") == "Bearer "+token {
				return answer(200, headJSON)(r)
			}
		}
		return answer(401, "")(r)
	}
}

func sourceClient(t testing.TB, transport http.RoundTripper, source TokenSource, opts ...Option) *Client {
	t.Helper()
	all := []Option{WithHTTPClient(&http.Client{Transport: transport}), WithRetryPolicy(atOncePolicy), WithTokenSource(source)}
	client := Must(New(memoryURL, "", append(all, opts...)...))(t)
	return client
}

func TestTokenSourceIsAskedAgainAfter401(t *testing.T) {
	for _, call := range calls {
		t.Run(call.method, func(t *testing.T) {
			source := &tokens{}
			tr := newScript(answer(401, ""), answer(200, `{"id":"`+testHead+`","sharedKey":"k"}`))
			var attempts []Attempt
			client := sourceClient(t, tr, source.next, WithRetryPolicy(RetryPolicy{}),
				WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { attempts = append(attempts, a) }}))
			require.NoError(t, call.run(t.Context(), client), "with MaxRetries 0 too")
			assert.Equal(t, []string{"", "t1"}, source.asked, "with the token that was refused")
			require.Equal(t, 2, tr.sent())
			assert.Equal(t, []string{"Bearer t1"}, tr.requests[0].Header["Authorization"])
			assert.Equal(t, []string{"Bearer t2"}, tr.requests[1].Header["Authorization"])
			assert.Equal(t, tr.bodies[0], tr.bodies[1], "the body is sent again")
			require.Len(t, attempts, 2)
			assert.False(t, attempts[0].Final)
			assert.True(t, attempts[1].Final)
		})
	}
}

func TestAskingAgainIsNotARetry(t *testing.T) {
	source := &tokens{}
	tr := newScript(answer(503, ""), answer(401, ""), answer(503, ""), answer(503, ""), answer(503, ""))
	client := sourceClient(t, tr, source.next)
	failure := As[*Error](t, getHead(t.Context(), client))
	assert.Equal(t, 503, failure.StatusCode)
	assert.Equal(t, 5, failure.Attempts, "three retries and one renewal")
	assert.Equal(t, 5, tr.sent())
}

func TestTokenSourceIsAskedAgainOnlyOnceACall(t *testing.T) {
	source := &tokens{}
	tr := newScript(accepting("t4"))
	client := sourceClient(t, tr, source.next)
	require.ErrorIs(t, getHead(t.Context(), client), ErrUnauthorized)
	assert.Equal(t, 2, tr.sent())
	assert.Equal(t, []string{"", "t1"}, source.asked)

	require.ErrorIs(t, getHead(t.Context(), client), ErrUnauthorized, "the next call asks with the token that it had")
	assert.Equal(t, []string{"", "t1", "t2"}, source.asked)
	require.NoError(t, getHead(t.Context(), client))
}

func TestSameTokenIsNotTriedTwice(t *testing.T) {
	tr := newScript(answer(401, `{"message":"expired"}`))
	failure := As[*Error](t, getHead(t.Context(), sourceClient(t, tr, fixedSource("same"))))
	assert.Equal(t, 401, failure.StatusCode)
	assert.Equal(t, "expired", failure.Message)
	assert.Equal(t, 1, tr.sent())
}

func TestFailingSourceSendsNothing(t *testing.T) {
	lost := errors.New("vault is sealed")
	for name, row := range map[string]struct {
		source TokenSource
		says   string
	}{
		"error": {func(context.Context, string) (string, error) { return "", lost }, "vault is sealed"},
		"beside it": {func(context.Context, string) (string, error) {
			return "hush-hush", errors.New("hush-hush can't be stored")
		}, "[redacted] can't be stored"},
		"empty token": {fixedSource(""), "is blank"},
		"Bearer":      {fixedSource("Bearer hush-hush"), `starts with "Bearer "`},
		"line feed":   {fixedSource("hush-hush\n"), "line break"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newScript(answer(200, headJSON))
			err := getHead(t.Context(), sourceClient(t, tr, row.source))
			require.ErrorContains(t, err, "heads: Heads.Get: nothing was sent: token source: ")
			require.ErrorContains(t, err, row.says)
			assert.NotContains(t, err.Error(), "hush-hush")
			assert.Equal(t, 0, tr.sent())
			if name == "error" {
				require.ErrorIs(t, err, lost)
			}
		})
	}
}

func TestSourceIsAskedAgainByTheNextCallAfterAnError(t *testing.T) {
	asked := 0
	client := sourceClient(t, newScript(accepting("t2")), func(context.Context, string) (string, error) {
		if asked++; asked == 1 {
			return "", errors.New("not yet")
		}
		return "t2", nil
	})
	require.Error(t, getHead(t.Context(), client))
	require.NoError(t, getHead(t.Context(), client))
}

func TestFailingSourceAfter401KeepsTheAnswer(t *testing.T) {
	lost := errors.New("vault is sealed")
	for name, row := range map[string]struct {
		token string
		err   error
		says  string
	}{
		"error":      {"", lost, "vault is sealed"},
		"no token":   {"", nil, "is blank"},
		"bad token":  {"two words", nil, "a space"},
		"old in err": {"", fmt.Errorf("t1-old was revoked: %w", lost), "[redacted] was revoked"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newScript(answer(401, `{"message":"expired"}`))
			err := getHead(t.Context(), sourceClient(t, tr, func(_ context.Context, rejected string) (string, error) {
				if rejected == "" {
					return "t1-old", nil
				}
				return row.token, row.err
			}))
			require.ErrorIs(t, err, ErrUnauthorized)
			failure := As[*Error](t, err)
			assert.Equal(t, "expired", failure.Message)
			assert.NotEmpty(t, failure.Body)
			require.ErrorContains(t, err, row.says)
			assert.NotContains(t, err.Error(), "t1-old")
			assert.Equal(t, 1, tr.sent())
			if row.err != nil {
				require.ErrorIs(t, err, lost)
			}
		})
	}
}

func TestPanickingSourceLeavesTheClientUsable(t *testing.T) {
	for name, panicOn := range map[string]string{"first asking": "", "second asking": "t1"} {
		t.Run(name, func(t *testing.T) {
			panicked := false
			client := sourceClient(t, newScript(accepting("t2")), func(_ context.Context, rejected string) (string, error) {
				if rejected == panicOn && !panicked {
					panicked = true
					panic("source broke")
				}
				if rejected == "" && panicOn != "" {
					return "t1", nil
				}
				return "t2", nil
			})
			assert.PanicsWithValue(t, "source broke", func() { _ = getHead(t.Context(), client) })
			require.NoError(t, getHead(t.Context(), client))
		})
	}
}

func TestManyFirstCallsAskOnce(t *testing.T) {
	source := &tokens{}
	client := sourceClient(t, newScript(accepting("t1")), source.next)
	inParallel(50, func(int) { assert.NoError(t, getHead(t.Context(), client)) })
	assert.Equal(t, []string{""}, source.asked)
}

// All 50 calls have sent the old token before the first of them is refused.
func TestManyRefusedCallsAskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &tokens{}
		gate := make(chan struct{})
		tr := newScript(answer(200, headJSON), func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("Authorization") == "Bearer t1" {
				<-gate
			}
			return accepting("t2")(r)
		})
		client := sourceClient(t, tr, source.next)
		require.NoError(t, getHead(t.Context(), client), "t1 is in force")
		go func() {
			synctest.Wait()
			close(gate)
		}()
		inParallel(50, func(int) { assert.NoError(t, getHead(t.Context(), client)) })
		assert.Equal(t, []string{"", "t1"}, source.asked, "once for the first call, once for the others")
		assert.Equal(t, 1+50+50, tr.sent())
	})
}

func TestLateRefusalOfAnOldTokenAsksNobody(t *testing.T) {
	source := &tokens{}
	var client *Client
	first := true
	tr := newScript(answer(200, headJSON), func(r *http.Request) (*http.Response, error) {
		if first { // while this call is on its way, another one renews the token
			first = false
			assert.NoError(t, getHead(t.Context(), client))
		}
		return accepting("t2")(r)
	})
	client = sourceClient(t, tr, source.next)
	require.NoError(t, getHead(t.Context(), client), "t1 is in force")
	require.NoError(t, getHead(t.Context(), client))
	assert.Equal(t, []string{"", "t1"}, source.asked)
}

func TestWaitingForTheSourceEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		client := sourceClient(t, newScript(answer(200, headJSON)), func(context.Context, string) (string, error) {
			<-release
			return pathToken, nil
		})
		done := make(chan error, 1)
		go func() { done <- getHead(t.Context(), client) }()
		synctest.Wait() // until the source waits

		ctx, cancel := context.WithCancel(t.Context())
		waiting := make(chan error, 1)
		go func() { waiting <- getHead(ctx, client) }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-waiting, context.Canceled)
		close(release)
		require.NoError(t, <-done)
	})
}

func TestSourceGetsTheContextOfTheCall(t *testing.T) {
	type key struct{}
	var got []any
	tr := newScript(answer(401, ""), answer(200, headJSON))
	client := sourceClient(t, tr, func(ctx context.Context, rejected string) (string, error) {
		got = append(got, ctx.Value(key{}))
		return "token" + rejected, nil
	})
	require.NoError(t, getHead(context.WithValue(t.Context(), key{}, "mine"), client))
	assert.Equal(t, []any{"mine", "mine"}, got)
}
