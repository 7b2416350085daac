package heads

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headsapi/heads-go/internal/check"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
)

func TestBaseURL(t *testing.T) {
	insecure := []Option{WithInsecureHTTP()}
	for name, row := range map[string]struct {
		url  string
		opts []Option
		base string // what requests go to; "" when it is refused
		says string
	}{
		"https":                     {url: "https://api.example.com", base: "https://api.example.com"},
		"upper case":                {url: "HTTPS://api.example.com", base: "https://api.example.com"},
		"slash at the end":          {url: "https://api.example.com/", base: "https://api.example.com"},
		"prefix":                    {url: "https://api.example.com/a/b", base: "https://api.example.com/a/b"},
		"prefix with a slash":       {url: "https://api.example.com/a/b//", base: "https://api.example.com/a/b"},
		"prefix with an escape":     {url: "https://api.example.com/a%2Fb", base: "https://api.example.com/a%2Fb"},
		"port":                      {url: "https://api.example.com:8443/v1", base: "https://api.example.com:8443/v1"},
		"http to localhost":         {url: "http://localhost:8080", base: "http://localhost:8080"},
		"http to a sub-localhost":   {url: "http://api.localhost:8080", says: "plain http"},
		"http to 127.0.0.1":         {url: "http://127.0.0.1", base: "http://127.0.0.1"},
		"http to the loopback net":  {url: "http://127.9.9.9", base: "http://127.9.9.9"},
		"http to ::1":               {url: "http://[::1]:80", base: "http://[::1]:80"},
		"escaped path with slash":   {url: "https://api.example.com/a%2Fb/", base: "https://api.example.com/a%2Fb"},
		"http with insecure":        {url: "http://api.example.com", opts: insecure, base: "http://api.example.com"},
		"http":                      {url: "http://api.example.com", says: "plain http"},
		"http to localhost in name": {url: "http://localhost.example.com", says: "plain http"},
		"http to any address":       {url: "http://0.0.0.0", says: "plain http"},
		"http to a private address": {url: "http://10.0.0.1", says: "plain http"},
		"empty":                     {url: "", says: "is blank"},
		"blank":                     {url: " \n", says: "is blank"},
		"no scheme":                 {url: "api.example.com/v1", says: "is not absolute"},
		"path":                      {url: "/v1", says: "is not absolute"},
		"host and port":             {url: "api.example.com:443", says: "is not absolute"},
		"scheme-relative":           {url: "//api.example.com", says: "neither http nor https"},
		"ftp":                       {url: "ftp://api.example.com", says: "neither http nor https"},
		"ftp with insecure":         {url: "ftp://api.example.com", opts: insecure, says: "neither http nor https"},
		"no host":                   {url: "https:///v1", says: "has no host"},
		"port alone":                {url: "https://:443", says: "has no host"},
		"opaque":                    {url: "https:api.example.com", says: "has no host"},
		"user":                      {url: "https://me@api.example.com", says: "user name"},
		"user and password":         {url: "https://me:hush-hush@api.example.com", says: `"https://api.example.com" carries a user name`},
		"query":                     {url: "https://api.example.com?key=hush-hush", says: "query or fragment"},
		"query after a quote mark":  {url: `https://api.example.com/"?key=hush-hush`, says: "query or fragment"},
		"empty query":               {url: "https://api.example.com/?", says: "query or fragment"},
		"fragment":                  {url: "https://api.example.com/#hush-hush", says: "query or fragment"},
		"empty fragment":            {url: "https://api.example.com/#", says: "query or fragment"},
		"space at its end":          {url: "https://api.example.com/v1 ", says: "holds a space"},
		"broken escape":             {url: "https://api.example.com/%zz", says: "can't be parsed"},
		"broken with password":      {url: "https://me:hush-hush@api.example.com:port", says: "can't be parsed"},
		"token in its place":        {url: "hush-hush.abc.def", says: "is not absolute"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newScript(answer(200, headJSON))
			client, err := New(row.url, pathToken, append(row.opts, WithHTTPClient(&http.Client{Transport: tr}))...)
			if row.base == "" {
				var invalid *InvalidError
				require.ErrorAs(t, err, &invalid)
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
				var invalid *InvalidError
				require.ErrorAs(t, err, &invalid)
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
		"nil observer":           {WithObserver(Observer[Attempt]{}), "WithObserver"},
		"application, no name":   {WithApplication("", "1"), "WithApplication"},
		"application, space":     {WithApplication("my app", "1"), "WithApplication"},
		"application, slash":     {WithApplication("my/app", ""), "WithApplication"},
		"application, injection": {WithApplication("app", "1\r\nX: y"), "WithApplication"},
		"application, letters":   {WithApplication("äpp", "1"), "WithApplication"},
		"no access URL":          {WithAccessBases("", ""), "WithAccessBases"},
		"chat URL without host":  {WithAccessBases("https://", ""), "chat URL"},
		"stream URL with query":  {WithAccessBases("", "https://stream.example.com?a=b"), "stream URL"},
		"no provider":            {WithStreamingProviders(), "WithStreamingProviders"},
		"blank provider":         {WithStreamingProviders("azure", " "), "WithStreamingProviders"},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := New(memoryURL, pathToken, row.opt)
			assert.Nil(t, client)
			var invalid *InvalidError
			require.ErrorAs(t, err, &invalid)
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

func TestTokenBesideTokenSourceIsRefused(t *testing.T) {
	_, err := New(memoryURL, "hush-hush", WithTokenSource(fixedSource("hush-hush")))
	var invalid *InvalidError
	require.ErrorAs(t, err, &invalid)
	assert.Equal(t, "token", invalid.Field)
	assert.Contains(t, invalid.Problem+"; "+invalid.Remedy, "beside a token source")
	assert.NotContains(t, err.Error(), "hush-hush")
}

func TestHTTPClientIsCopiedAndNeverChanged(t *testing.T) {
	tr, other := newScript(answer(200, headJSON)), newScript(answer(200, headJSON))
	hc := &http.Client{Transport: tr, Timeout: time.Minute}
	client, err := New(memoryURL, pathToken, WithHTTPClient(hc))
	require.NoError(t, err)
	assert.Equal(t, &http.Client{Transport: tr, Timeout: time.Minute}, hc)
	hc.Transport = other
	require.NoError(t, getHead(t.Context(), client))
	assert.Equal(t, 1, tr.sent())
	assert.Equal(t, 0, other.sent())
}

func TestDefaultTransportIsUsedWithoutOne(t *testing.T) {
	for name, opts := range map[string][]Option{
		"no option":    nil,
		"empty client": {WithHTTPClient(&http.Client{})},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := New(memoryURL, pathToken, opts...)
			require.NoError(t, err)
			assert.Same(t, http.DefaultTransport, client.core.transport)
		})
	}
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
			t.Run(name+", "+where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
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
			})
		}
	}
}

func TestTimeoutOfTheLastAttemptIsADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newTestClient(t, memoryURL, newScript(hang), WithAttemptTimeout(time.Second))
		err := getHead(t.Context(), client)
		require.ErrorContains(t, err, "no whole answer within 1s")
		assertTimeout(t, err)
		assert.NoError(t, t.Context().Err())
	})
}

func TestCookieJarIsKept(t *testing.T) {
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
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
	var failure *Error
	require.ErrorAs(t, getHead(t.Context(), client), &failure)
	assert.Equal(t, 302, failure.StatusCode)
	assert.Equal(t, 1, tr.sent())
}

func TestUserAgent(t *testing.T) {
	for name, row := range map[string]struct {
		opts []Option
		want string
	}{
		"alone":           {nil, "heads-go/" + Version},
		"application":     {[]Option{WithApplication("kiosk", "2.1.0-rc.1+5")}, "kiosk/2.1.0-rc.1+5 heads-go/" + Version},
		"without version": {[]Option{WithApplication("kiosk", "")}, "kiosk heads-go/" + Version},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newScript(answer(200, headJSON))
			require.NoError(t, getHead(t.Context(), newTestClient(t, memoryURL, tr, row.opts...)))
			assert.Equal(t, []string{row.want}, tr.requests[0].Header["User-Agent"])
		})
	}
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
			assert.Equal(t, row.wantChat, client.core.chatBase)
			assert.Equal(t, row.wantStream, client.core.streamBase)
		})
	}
}

// NewFromEnv applies its options twice, and an option may be kept for several
// clients.
func TestOptionsCanBeAppliedAgain(t *testing.T) {
	hc := &http.Client{Transport: newScript(answer(200, headJSON))}
	logger := slog.New(slog.DiscardHandler)
	observed := 0
	rows := map[string]struct {
		opt    Option
		effect func(*Client) any
		want   any
	}{
		"WithHTTPClient": {WithHTTPClient(hc), func(c *Client) any { return c.core.transport }, hc.Transport},
		"WithTokenSource": {WithTokenSource(fixedSource("from-source")), func(c *Client) any {
			cred, err := c.core.credentials.get(t.Context())
			require.NoError(t, err)
			return cred.token
		}, "from-source"},
		"WithRetryPolicy":    {WithRetryPolicy(RetryPolicy{MaxRetries: 7}), func(c *Client) any { return c.core.retry }, RetryPolicy{MaxRetries: 7}},
		"WithAttemptTimeout": {WithAttemptTimeout(7 * time.Second), func(c *Client) any { return c.core.attemptTimeout }, 7 * time.Second},
		"WithRateLimit":      {WithRateLimit(7, 3), func(c *Client) any { return []any{c.core.pace.limiter.Limit(), c.core.pace.limiter.Burst()} }, []any{rate.Limit(7), 3}},
		"WithLogger":         {WithLogger(logger), func(c *Client) any { return c.core.logger }, logger},
		"WithObserver": {WithObserver(Observer[Attempt]{End: func(context.Context, Attempt) { observed++ }}), func(c *Client) any {
			before := observed
			c.core.observers[0].End(t.Context(), Attempt{})
			return observed - before
		}, 1},
		"WithApplication": {WithApplication("kiosk", "2"), func(c *Client) any { return c.core.userAgent }, []string{"kiosk/2 " + userAgent}},
		"WithAccessBases": {WithAccessBases("https://a.example.com/", "https://b.example.com"), func(c *Client) any {
			return []string{c.core.chatBase, c.core.streamBase}
		}, []string{"https://a.example.com", "https://b.example.com"}},
		"WithStreamingProviders": {WithStreamingProviders("Acme"), func(c *Client) any { return c.core.streamingProvider }, map[string]bool{"acme": true}},
		"WithInsecureHTTP":       {WithInsecureHTTP(), func(c *Client) any { return c.core.insecureHTTP }, true},
	}
	api, err := os.ReadFile("testdata/api.txt")
	require.NoError(t, err)
	var named []string
	for line := range strings.Lines(string(api)) {
		if name, ok := strings.CutPrefix(line, "heads: func With"); ok && strings.HasSuffix(name, " Option\n") {
			named = append(named, "With"+name[:strings.Index(name, "(")])
		}
	}
	assert.ElementsMatch(t, named, slices.Collect(maps.Keys(rows)), "a row for every option")
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			token := pathToken
			if name == "WithTokenSource" {
				token = ""
			}
			for range 2 {
				client, err := New(memoryURL, token, row.opt)
				require.NoError(t, err)
				assert.Equal(t, row.want, row.effect(client))
			}
			t.Setenv("HEADS_BASE_URL", memoryURL)
			t.Setenv("HEADS_TOKEN", token)
			client, err := NewFromEnv(row.opt)
			require.NoError(t, err)
			assert.Equal(t, row.want, row.effect(client))
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
	client, err := New(memoryURL, pathToken)
	require.NoError(t, err)
	assert.Empty(t, client.core.chatBase)
}

func TestStreamingProviders(t *testing.T) {
	client, err := New(memoryURL, pathToken)
	require.NoError(t, err)
	assert.Equal(t, map[string]bool{"azure": true, "elevenlabs": true}, client.core.streamingProvider)
	client, err = New(memoryURL, pathToken, WithStreamingProviders("Acme", "azure"))
	require.NoError(t, err)
	assert.Equal(t, map[string]bool{"acme": true, "azure": true}, client.core.streamingProvider)
}

func TestConstructorMakesNoCall(t *testing.T) {
	tr := newScript(answer(200, ""))
	asked := false
	_, err := New(memoryURL, "", WithHTTPClient(&http.Client{Transport: tr}), WithLogger(slog.New(slog.DiscardHandler)),
		WithTokenSource(func(context.Context, string) (string, error) { asked = true; return pathToken, nil }))
	require.NoError(t, err)
	assert.Equal(t, 0, tr.sent())
	assert.False(t, asked)
}
