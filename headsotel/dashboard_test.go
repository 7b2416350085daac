package headsotel

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/headsapi/heads-go"
)

// prometheusNames returns the names under which a Prometheus server has the
// metrics, and their labels, after one failed attempt, one delivery and one tool
// call.
func prometheusNames(t *testing.T) map[string][]string {
	t.Helper()
	r := newRecorder()
	require.Error(t, get(t.Context(), t, "https://api.example.com", answer(404), Client(r.options()...)))
	events, err := heads.NewEventHandler(heads.SharedKeys(sharedKey), func(context.Context, *heads.Event) error { return nil }, Events(r.options()...))
	require.NoError(t, err)
	deliver(t, events, heads.EventStartConversation, sharedKey)
	tools, err := heads.NewToolHandler("https://tools.example.com", Tools(r.options()...))
	require.NoError(t, err)
	require.NoError(t, heads.AddTool(tools, "find", "Finds", func(context.Context, struct{}) (string, error) { return "", nil }))
	tools.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/find", strings.NewReader("{}")))

	labels := func(set attribute.Set) (names []string) {
		for _, a := range set.ToSlice() {
			names = append(names, strings.ReplaceAll(string(a.Key), ".", "_"))
		}
		return append(names, "le")
	}
	names := map[string][]string{}
	for name, m := range r.metrics(t) {
		name = strings.ReplaceAll(name, ".", "_")
		switch data := m.Data.(type) {
		case metricdata.Histogram[float64]:
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				names[name+"_seconds"+suffix] = labels(data.DataPoints[0].Attributes)
			}
		case metricdata.Sum[int64]:
			names[name+"_total"] = labels(data.DataPoints[0].Attributes)
		}
	}
	return names
}

var (
	metricName = regexp.MustCompile(`\b(?:http|heads)_[a-z_]+_(?:bucket|count|sum|total)\b`)
	labelName  = regexp.MustCompile(`(\w+)(?:=~?|!=)"`)
	groupName  = regexp.MustCompile(`by \(([^)]*)\)`)
)

func TestQueriesOfTheDashboardMatchTheMetrics(t *testing.T) {
	known := prometheusNames(t)
	raw, err := os.ReadFile("../docs/observability-dashboard.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(raw, &dashboard))
	used := map[string]bool{}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			var labels []string
			for _, m := range labelName.FindAllStringSubmatch(target.Expr, -1) {
				labels = append(labels, m[1])
			}
			for _, m := range groupName.FindAllStringSubmatch(target.Expr, -1) {
				labels = append(labels, strings.Split(strings.ReplaceAll(m[1], " ", ""), ",")...)
			}
			metrics := metricName.FindAllString(target.Expr, -1)
			require.NotEmpty(t, metrics, "%s: %s", p.Title, target.Expr)
			for _, metric := range metrics {
				used[metric] = true
				require.Contains(t, known, metric, p.Title)
				for _, label := range labels {
					assert.True(t, slices.Contains(known[metric], label), "%s: %s has no label %s", p.Title, metric, label)
				}
			}
		}
	}
	for _, want := range []string{"http_client_request_duration_seconds_bucket", "heads_delivery_duration_seconds_bucket", "heads_delivery_count_total", "heads_tool_duration_seconds_bucket"} {
		assert.True(t, used[want], "%s is on no panel", want)
	}
}
