package fleet_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sampleReport returns a report with every outcome and with texts that each format must escape.
func sampleReport(t testing.TB) *fleet.Report {
	t.Helper()
	address := func(base string) heads.AccessURL {
		a := need(heads.ParseAccessURL(base + "/MyOrg-1/li-1?api_key=canary-key&lang=canary-query"))(t)
		return a
	}
	started := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	return &fleet.Report{Environment: "production & <b>", Started: started, Ended: started.Add(90 * time.Second), Results: []fleet.Result{
		{HeadID: lobby, Label: `=HYPERLINK("x")`, Outcome: fleet.OutcomeChanged, Before: address("https://chat.example.com"), After: address("https://stream.example.com"),
			Changes: []fleet.Change{{Field: "streaming", From: "false", To: "true"}, {Field: "tool find", To: "url: x"}, {Field: "greetings", From: "Hi"}},
			Started: started, Duration: 1500 * time.Millisecond},
		{HeadID: other, Label: `<script>alert("1")</script>`, Outcome: fleet.OutcomeFailed, Reason: heads.ReasonTemporary, Err: errors.New(`a "quoted" & <b>bold</b> error`), Started: started},
		{HeadID: "00000000-0000-0000-0000-000000000001", Label: "-1+2", Outcome: fleet.OutcomeBlocked, Reason: heads.ReasonVisual, Err: heads.ErrVisualMode, Started: started},
		{HeadID: "00000000-0000-0000-0000-000000000002", Label: "@x", Outcome: fleet.OutcomeSkipped},
	}}
}

func TestJSONReport(t *testing.T) {
	report := sampleReport(t)
	var written bytes.Buffer
	require.NoError(t, report.WriteJSON(&written))
	marshalled := need(json.Marshal(report))(t)
	assert.JSONEq(t, string(marshalled), written.String(), "WriteJSON and encoding/json write the same")
	want := `{
		"environment": "production & <b>",
		"started": "2026-11-21T12:00:00Z", "ended": "2026-11-21T12:01:30Z",
		"counts": {"changed": 1, "pending": 0, "unchanged": 0, "blocked": 1, "failed": 1, "skipped": 1},
		"results": [
			{"head_id": "` + lobby + `", "label": "=HYPERLINK(\"x\")", "outcome": "changed", "changes": [
				{"field": "streaming", "from": "false", "to": "true"}, {"field": "tool find", "from": "", "to": "url: x"}, {"field": "greetings", "from": "Hi", "to": ""}],
				"before": "https://chat.example.com/MyOrg-1/li-1", "after": "https://stream.example.com/MyOrg-1/li-1", "started": "2026-11-21T12:00:00Z", "duration_ms": 1500},
			{"head_id": "` + other + `", "label": "<script>alert(\"1\")</script>", "outcome": "failed", "changes": [], "reason": "temporary", "error": "a \"quoted\" & <b>bold</b> error", "started": "2026-11-21T12:00:00Z", "duration_ms": 0},
			{"head_id": "00000000-0000-0000-0000-000000000001", "label": "-1+2", "outcome": "blocked", "changes": [], "reason": "visual", "error": "` + heads.ErrVisualMode.Error() + `", "started": "2026-11-21T12:00:00Z", "duration_ms": 0},
			{"head_id": "00000000-0000-0000-0000-000000000002", "label": "@x", "outcome": "skipped", "changes": [], "duration_ms": 0}],
		"moves": [{"head_id": "` + lobby + `", "label": "=HYPERLINK(\"x\")", "old": "https://chat.example.com/MyOrg-1/li-1", "new": "https://stream.example.com/MyOrg-1/li-1"}]}`
	assert.JSONEq(t, want, written.String())

	empty := need(json.Marshal(fleet.Report{}))(t)
	assert.NotContains(t, string(empty), "null", "a list is never null")
	assert.NotContains(t, string(empty), "environment")
}

func TestCSVReport(t *testing.T) {
	var written bytes.Buffer
	require.NoError(t, sampleReport(t).WriteCSV(&written))
	rows := need(csv.NewReader(&written).ReadAll())(t)
	assert.Equal(t, [][]string{
		{"head_id", "label", "outcome", "reason", "old_address", "new_address", "changes", "error", "started", "duration_ms"},
		{lobby, `'=HYPERLINK("x")`, "changed", "", "https://chat.example.com/MyOrg-1/li-1", "https://stream.example.com/MyOrg-1/li-1",
			"streaming: false → true\ntool find: url: x\ngreetings: Hi removed", "", "2026-11-21T12:00:00Z", "1500"},
		{other, `<script>alert("1")</script>`, "failed", "temporary", "", "", "", `a "quoted" & <b>bold</b> error`, "2026-11-21T12:00:00Z", "0"},
		{"00000000-0000-0000-0000-000000000001", "'-1+2", "blocked", "visual", "", "", "", heads.ErrVisualMode.Error(), "2026-11-21T12:00:00Z", "0"},
		{"00000000-0000-0000-0000-000000000002", "'@x", "skipped", "", "", "", "", "", "", "0"},
	}, rows)
}

func TestHTMLReportLoadsNothingAndEscapesAllText(t *testing.T) {
	var written bytes.Buffer
	require.NoError(t, sampleReport(t).WriteHTML(&written))
	page := written.String()
	for _, outcome := range []string{"changed", "failed", "blocked", "skipped"} {
		assert.Equal(t, 1, strings.Count(page, `<tr data-outcome="`+outcome+`">`), outcome)
	}
	assert.Equal(t, 1, strings.Count(page, "<script>"), "only the page's own")
	assert.NotRegexp(t, `(?i)(src|href|action)\s*=|@import|url\(|<link|<img|<iframe`, page)
	for _, want := range []string{"<h1>4 heads in production &amp; &lt;b&gt;</h1>", "&lt;script&gt;alert(", "&lt;b&gt;bold", "default-src 'none'", "prefers-color-scheme: dark",
		"A new head is needed", "run it again", "https://chat.example.com/MyOrg-1/li-1<"} {
		assert.Contains(t, page, want)
	}
}

func TestEveryReasonHasARemedyInTheHTMLReport(t *testing.T) {
	for _, reason := range []heads.Reason{heads.ReasonVisual, heads.ReasonProvider, heads.ReasonRefused, heads.ReasonTemporary, heads.ReasonUnknownOutcome, heads.ReasonAddress} {
		var page bytes.Buffer
		require.NoError(t, (&fleet.Report{Results: []fleet.Result{{Outcome: fleet.OutcomeFailed, Reason: reason}}}).WriteHTML(&page))
		assert.Regexp(t, "<li><strong>"+string(reason)+`</strong> \(1\): [A-Z].{20,}</li>`, page.String())
	}
}

// Secrets of a head, of its spec and of its access URLs.
var canaries = []string{"canary-key", "canary-query", "canary-voiceflow", "canary-hook-path-token", "canary-hook-query", "canary-tool-path-token", "canary-plugin", "canary-token"}

func assertNoCanary(t *testing.T, text, where string) {
	t.Helper()
	for _, canary := range canaries {
		assert.NotContains(t, text, canary, where)
		assert.NotContains(t, text, fmt.Sprintf("%x", canary), where)
	}
}

func TestNothingPrintsASecret(t *testing.T) {
	e := newEmulator(t, headstest.WithToken("canary-token"))
	spec := everything(e.AddHead(headstest.Head{TTSProvider: "polly", Fields: map[string]any{
		"publicUrl": "https://chat.example.test/MyOrg-1/li-1?api_key=canary-key&lang=canary-query", "publicId": "li-1", "orgPublicId": "MyOrg-1", "voiceflowApiKey": "canary-voiceflow-old"}}))
	spec.Set["voiceflowApiKey"] = "canary-voiceflow"
	spec.Set["pluginOperationalModeConfig"] = map[string]any{"api_key": "canary-plugin"}
	spec.Webhooks[0].URL = "https://hooks.example.com/canary-hook-path-token?key=canary-hook-query"
	(*spec.Tools)[0].URL = "https://tools.example.com/canary-tool-path-token/find"
	path := journalPath(t)
	journal := openJournal(t, path)
	report := apply(t, e, fleet.Options{Journal: journal}, spec)
	require.Equal(t, fleet.OutcomeChanged, report.Results[0].Outcome, "%v", report.Results[0].Err)
	(*spec.Tools)[0].URL = "https://tools.example.com/canary-tool-path-token-2/find"
	again := apply(t, e, fleet.Options{Journal: journal}, spec)
	assert.Equal(t, []fleet.Change{{Field: "tool find", From: "url: [redacted]", To: "url: [redacted]"}}, again.Results[0].Changes)
	require.Len(t, again.Moves(), 1)

	for _, r := range []*fleet.Report{report, again} {
		var out bytes.Buffer
		require.NoError(t, r.WriteJSON(&out))
		require.NoError(t, r.WriteCSV(&out))
		require.NoError(t, r.WriteHTML(&out))
		assertNoCanary(t, out.String(), "report")
		values := []any{r, *r, r.Results, r.Results[0], &r.Results[0], r.Moves(), r.Moves()[0], spec, &spec, spec.Webhooks[0], journal}
		for _, v := range values {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
				assertNoCanary(t, fmt.Sprintf(verb, v), fmt.Sprintf("%s of %T", verb, v))
			}
			var log bytes.Buffer
			slog.New(slog.NewTextHandler(&log, nil)).Info("m", "v", v)
			slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", v)
			assertNoCanary(t, log.String(), fmt.Sprintf("log of %T", v))
		}
	}
	assertNoCanary(t, readFile(t, path), "journal")
}

func TestLongTextsOfAChangeAreCutWhereTheyDiffer(t *testing.T) {
	long := strings.Repeat("Be kind to everybody. ", 100)
	e, id := withHead(t, headstest.Head{Fields: map[string]any{"promptConfig": map[string]any{"system_prompt": long + "old\x1b[31m\nend"}}})
	change := plan(t, e, fleet.Spec{ID: id, Set: map[string]any{"promptConfig": map[string]any{"system_prompt": long + "new"}}}).Results[0].Changes[0]
	assert.Equal(t, "promptConfig.system_prompt", change.Field)
	assert.Regexp(t, `^….*old \[31m end$`, change.From)
	assert.Regexp(t, `^….*new$`, change.To)
	assert.Less(t, len([]rune(change.From)), 121)
}
