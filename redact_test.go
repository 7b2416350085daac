package heads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// escapes are the ways in which a service or proxy may quote a text.
var escapes = map[string]func(string) string{
	"plain":                 func(s string) string { return s },
	"query":                 url.QueryEscape,
	"path":                  url.PathEscape,
	"query, lower case":     func(s string) string { return strings.ToLower(url.QueryEscape(s)) },
	"query, twice":          func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
	"query, three times":    func(s string) string { return url.QueryEscape(url.QueryEscape(url.QueryEscape(s))) },
	"every byte in a query": func(s string) string { return each(s, "%%%02x") },
	"HTML":                  html.EscapeString,
	"HTML, twice":           func(s string) string { return html.EscapeString(html.EscapeString(s)) },
	"HTML, decimal":         func(s string) string { return each(s, "&#%d;") },
	"HTML, padded":          func(s string) string { return each(s, "&#x%04X;") },
	"HTML, named":           strings.NewReplacer("=", "&equals;", "+", "&plus;", "/", "&sol;", ".", "&period;", "&", "&amp;").Replace,
	"query in HTML":         func(s string) string { return html.EscapeString(url.QueryEscape(s)) },
	"HTML in a query":       func(s string) string { return url.QueryEscape(html.EscapeString(s)) },
	"JSON":                  func(s string) string { raw, _ := json.Marshal(s); return strings.Trim(string(raw), `"`) },
	"JSON, every byte":      func(s string) string { return each(s, `\u%04x`) },
	"JSON, slashes":         strings.NewReplacer(`/`, `\/`).Replace,
}

func each(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

func TestMessageMasksTheTokenHoweverItIsEscaped(t *testing.T) {
	for _, token := range []string{"abc+def/ghi==", `a<b>&"c'd`, "abc%41def", "abcdef", "eyJ0.eyJ1-_~.x=", `a\u0041b`} {
		for name, escape := range escapes {
			if name == "query, lower case" && strings.ToLower(token) != token {
				continue
			}
			t.Run(token+" "+name, func(t *testing.T) {
				sent := "before " + escape(token) + " " + escape(token) + "; after"
				body, err := json.Marshal(map[string]string{"message": sent, "code": escape(token)})
				require.NoError(t, err)
				client, err := New(memoryURL, token, WithHTTPClient(&http.Client{Transport: newScript(answer(400, string(body), "X-Request-Id: "+escape(token)))}))
				require.NoError(t, err)
				var failure *Error
				require.ErrorAs(t, getHead(t.Context(), client), &failure)
				want := "before [redacted] [redacted]; after"
				if escape(token) != token {
					want = "[redacted]"
				}
				assert.Equal(t, want, failure.Message)
				assert.Equal(t, "[redacted]", failure.Code)
				assert.Equal(t, "[redacted]", failure.RequestID)
			})
		}
	}
}

func TestMessageMasksWhatFollowsAQuestionMark(t *testing.T) {
	for sent, want := range map[string]string{
		"see https://a.example.com/x?api_key=hush-hush for more":      "see https://a.example.com/x?[redacted] for more",
		"no route /head/1?key=hush-hush":                              "no route /head/1?[redacted]",
		"?hush-hush":                                                  "?[redacted]",
		`"/x?k=hush-hush","/y?k=hush-hush" and more`:                  `"/x?[redacted] and more`,
		"/x?a=1&amp;k=hush-hush&#x26;l=hush-hush;":                    "/x?[redacted]",
		"https%3A%2F%2Fa.example.com%2Fx%3Fapi_key%3Dhush-hush more":  "https%3A%2F%2Fa.example.com%2Fx%3F[redacted] more",
		"%253fk%253dhush-hush":                                        "%253f[redacted]",
		"x&#63;k=hush-hush y&#x3F;k=hush-hush z&quest;k=hush-hush":    "x&#63;[redacted] y&#x3F;[redacted] z&quest;[redacted]",
		"https://me:hush-hush@a.example.com/":                         "https://a.example.com/",
		"https://a.example.com/cb#access_token=hush-hush was refused": "https://a.example.com/cb#[redacted] was refused",
		"Is it there? No.":                                            "Is it there? No.",
		"what ?":                                                      "what ?",
		"ticket #17":                                                  "ticket #17",
		"a\nb?k=hush-hush\nc":                                         "a b?[redacted] c",
	} {
		t.Run(sent, func(t *testing.T) {
			body, err := json.Marshal(map[string]string{"message": sent})
			require.NoError(t, err)
			var failure *Error
			require.ErrorAs(t, getHead(t.Context(), newTestClient(t, memoryURL, newScript(answer(400, string(body))))), &failure)
			assert.Equal(t, want, failure.Message)
		})
	}
}

// shown returns everything that a failing call shows: its error, and what its
// observer and logger receive.
func shown(t *testing.T, baseURL string, transport http.RoundTripper) string {
	t.Helper()
	var out bytes.Buffer
	client := newTestClient(t, baseURL, transport, WithRetryPolicy(RetryPolicy{}), WithLogger(slog.New(slog.NewTextHandler(&out, nil))),
		WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { fmt.Fprintf(&out, "%v\n%+v\n", a.Err, a) }}))
	err := getHead(t.Context(), client)
	require.Error(t, err)
	assert.LessOrEqual(t, utf8.RuneCountInString(err.Error()), 2*maxErrorText)
	return err.Error() + "\n" + out.String()
}

func TestErrorShowsNothingOfABrokenTrailer(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\n{}\r\n"
	for name, rest := range map[string]string{
		"no colon":     "0\r\nhush-hush\r\n\r\n",
		"body in it":   "0\r\n{\"sharedKey\":\"hush-hush\r\n\r\n",
		"space":        "0\r\n hush-hush: 1\r\n\r\n",
		"control byte": "0\r\nhush-hush\x01: 1\r\n\r\n",
		"chunk length": "hush-hush\r\n",
		"no line end":  "2\r\n{}hush-hush\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			got := shown(t, serveBytes(t, head+rest).url, newTransport(t))
			assert.Contains(t, got, "broke off")
			assert.NotContains(t, got, "hush")
		})
	}
}

// serveProxy returns a transport over a proxy with the same answer to every
// CONNECT.
func serveProxy(t *testing.T, answer string) http.RoundTripper {
	proxy := serveBytes(t, answer)
	transport := newTransport(t)
	transport.Proxy = func(*http.Request) (*url.URL, error) { return &url.URL{Scheme: "http", Host: proxy.addr}, nil }
	return transport
}

// net/http returns the reason phrase of the proxy as its error.
func TestReasonPhraseOfAProxyIsCleaned(t *testing.T) {
	for name, row := range map[string]struct{ phrase, want string }{
		"words":              {"Proxy Authentication Required", "no answer: Proxy Authentication Required"},
		"control characters": {"No\x1b[31mway\tthere", "no answer: No [31mway there"},
		"token":              {"No " + pathToken + " or " + pathToken, "no answer: No [redacted] or [redacted]"},
		"escaped token":      {"No " + pathToken + " or %74oken-of-the-tests", "no answer: [redacted]"},
		"query":              {"No /x?key=hush-hush and https://p.example.com/y?key=hush-hush", "no answer: No /x?[redacted] and https://p.example.com/y"},
		"password":           {"No https://me:hush-hush@p.example.com/", "no answer: No https://p.example.com/"},
		"long":               {strings.Repeat("é", 100<<10), strings.Repeat("é", maxErrorText-1) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			got := shown(t, memoryURL, serveProxy(t, "HTTP/1.1 407 "+row.phrase+"\r\nContent-Length: 0\r\n\r\n"))
			assert.Contains(t, got, row.want)
			assert.NotContains(t, got, "hush")
			assert.NotContains(t, got, "\x1b")
			assert.NotContains(t, got, strings.Repeat("é", maxErrorText))
		})
	}
	for name, answer := range map[string]string{
		"not HTTP":          "hush-hush\r\n\r\n",
		"header line":       "HTTP/1.1 200 OK\r\nhush-hush\r\n\r\n",
		"status":            "HTTP/1.1 hush-hush\r\n\r\n",
		"version":           "HTTP/hush-hush 200 OK\r\n\r\n",
		"length":            "HTTP/1.1 200 OK\r\nContent-Length: hush-hush\r\n\r\n",
		"two lengths":       "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: hush-hush\r\n\r\n",
		"transfer encoding": "HTTP/1.1 200 OK\r\nTransfer-Encoding: hush-hush\r\n\r\n",
		"trailer":           "HTTP/1.1 407 No\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Length, hush-hush\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			assert.NotContains(t, shown(t, memoryURL, serveProxy(t, answer)), "hush")
		})
	}
}

func TestErrorsOfATransportAreOneShortLine(t *testing.T) {
	for name, err := range map[string]error{
		"long":      errors.New(strings.Repeat("lost ", 10000)),
		"two lines": errors.Join(errors.New("lost"), &net.OpError{Op: "read", Err: io.ErrUnexpectedEOF}),
		"GOAWAY":    errors.New(`http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=NO_ERROR, debug="hush-hush"`),
		"path":      errors.New(`parse "/x?key=hush-hush": hopeless`),
	} {
		t.Run(name, func(t *testing.T) {
			client := newTestClient(t, memoryURL, newScript(fail(err)), WithRetryPolicy(RetryPolicy{}))
			got := getHead(t.Context(), client)
			require.ErrorIs(t, got, err)
			assert.LessOrEqual(t, utf8.RuneCountInString(got.Error()), maxErrorText+100)
			assert.NotContains(t, got.Error(), "\n")
			assert.NotContains(t, got.Error(), "hush")
		})
	}
}

func TestSecretPrintsAsRedacted(t *testing.T) {
	secret := NewSecret("hush-hush")
	for _, verb := range verbs {
		assert.Equal(t, "[redacted]", fmt.Sprintf(verb, secret), verb)
		assert.Equal(t, "[redacted]", fmt.Sprintf(verb, &secret), verb)
	}
	assert.Equal(t, "[redacted]", secret.String())
	assert.Equal(t, "[redacted]", fmt.Sprint(secret))
	assert.Equal(t, "[[redacted] ]", fmt.Sprint([]Secret{secret, {}}))
	assert.Equal(t, "map[k:[redacted]]", fmt.Sprint(map[string]Secret{"k": secret}))
}

func TestSecretLogsAsRedacted(t *testing.T) {
	for name, handler := range handlers {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			secret := NewSecret("hush-hush")
			slog.New(handler(&out)).Info("m", "value", secret, "pointer", &secret, slog.Group("g", "inner", secret))
			assert.NotContains(t, out.String(), "hush-hush")
			assert.Equal(t, 3, bytes.Count(out.Bytes(), []byte("[redacted]")))
		})
	}
}

// hostile are bytes that a terminal or a log viewer could obey.
const hostile = "a\x9bb\xffc\u009bd\u202ee\u2066f\x07g"

// assertClean checks that a text has no bytes and characters of that kind.
func assertClean(t *testing.T, text string) {
	t.Helper()
	assert.True(t, utf8.ValidString(text), "%q", text)
	for _, r := range text {
		if r != '\n' && !unicode.IsPrint(r) {
			assert.Failf(t, "a character that must not be shown", "%U in %q", r, text)
		}
	}
}

// logged returns what a JSON log holds, decoded, since the encoder escapes some
// control characters and leaves others.
func logged(t *testing.T, lines string) string {
	t.Helper()
	var all strings.Builder
	for line := range strings.Lines(lines) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &fields), line)
		fmt.Fprintln(&all, fields)
	}
	return all.String()
}

func TestForeignTextsAreCleanWhereverTheyAreShown(t *testing.T) {
	quoted := `"` + strings.NewReplacer("\x07", `\u0007`).Replace(hostile) + `"`
	body := func(status, header, text string) string {
		return fmt.Sprintf("HTTP/1.1 %s\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, header, len(text), text)
	}
	for name, sent := range map[string]string{
		"reason phrase":  body("500 "+hostile, "", "{}"),
		"message":        body("400 Bad", "", `{"message":`+quoted+`,"code":`+quoted+`}`),
		"list":           body("400 Bad", "", `{"message":[`+quoted+`,`+quoted+`]}`),
		"text":           body("400 Bad", "", hostile),
		"request id":     body("400 Bad", "X-Request-Id: "+strings.Trim(hostile, "\x07g")+"\r\n", "{}"),
		"correlation id": body("400 Bad", "X-Correlation-Id: \x9b\xc2\x9b\xe2\x80\xae\r\n", "{}"),
		"location":       body("302 Found", "Location: https://\x9b\xc2\x9b\xe2\x80\xae.example.com/\r\n", ""),
		"retry after":    body("429 No", "Retry-After: \x9b\xc2\x9b\r\n", "{}"),
		"trailer":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\n{}\r\n0\r\n" + hostile + ": 1\r\n\r\n",
		"header name":    "HTTP/1.1 200 OK\r\n" + hostile + ": 1\r\n\r\n",
		"length":         "HTTP/1.1 200 OK\r\nContent-Length: " + hostile + "\r\n\r\n",
		"encoding":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + hostile + "\r\n\r\n",
		"no HTTP":        hostile + "\r\n\r\n",
		"wrong type":     body("200 OK", "", `{"id":5,`+quoted+`:1}`),
		"another id":     body("200 OK", "", `{"id":`+quoted+`}`),
	} {
		t.Run(name, func(t *testing.T) {
			for way, server := range map[string]func() (string, http.RoundTripper){
				"service": func() (string, http.RoundTripper) { return serveBytes(t, sent).url, newTransport(t) },
				"proxy":   func() (string, http.RoundTripper) { return memoryURL, serveProxy(t, sent) },
			} {
				baseURL, transport := server()
				var log bytes.Buffer
				var seen strings.Builder
				client := newTestClient(t, baseURL, transport, WithRetryPolicy(RetryPolicy{}), WithLogger(slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
					WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { fmt.Fprintf(&seen, "%v\n%v\n%s\n", a.Err, a, a.RequestID) }}))
				err := getHead(t.Context(), client)
				require.Error(t, err, way)
				assertClean(t, err.Error())
				assertClean(t, seen.String())
				assertClean(t, logged(t, log.String()))
				var failure *Error
				if errors.As(err, &failure) {
					assertClean(t, failure.Message+failure.Code+failure.RequestID)
				}
			}
		})
	}
	lost := newTestClient(t, memoryURL, newScript(fail(errors.New(hostile))), WithRetryPolicy(RetryPolicy{}))
	assertClean(t, getHead(t.Context(), lost).Error())
	source, err := New(memoryURL, "", WithTokenSource(func(context.Context, string) (string, error) { return "", errors.New(hostile) }))
	require.NoError(t, err)
	assertClean(t, getHead(t.Context(), source).Error())
}

func TestLabelsOfRecordsAreCleanWhereTheyAreShown(t *testing.T) {
	event := &Event{Type: hostile, HeadID: hostile, SessionID: hostile, Timestamp: Time{Text: hostile}}
	tool := Tool{Name: hostile, URL: "https://" + hostile + "/", Parameters: []ToolParameter{{Name: hostile, Type: hostile}}}
	webhook := &Webhook{HeadID: hostile, URL: "https://" + hostile + "/"}
	_, parsed := ParseAccessURL("https://" + hostile + ".example.com/")
	for _, v := range []any{event, webhook, tool, tool.Validate(), parsed} {
		assertClean(t, fmt.Sprint(v))
	}
	var log bytes.Buffer
	for _, v := range []slog.LogValuer{&Head{ID: hostile, Name: hostile}, webhook, tool} {
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", v)
	}
	assertClean(t, logged(t, log.String()))
}
