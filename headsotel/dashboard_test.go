package headsotel

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headsapi/heads-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

var keep = flag.String("keep", "", "empty directory to keep the emulated hour in, as the data of a Prometheus server")

// panel has the parts of a panel of the dashboard that the test needs.
type panel struct {
	Title      string
	Datasource datasource
	Targets    []struct {
		Expr, LegendFormat string
		Datasource         datasource
	}
}

type datasource struct{ Type, UID string }

func TestDashboardShowsWhatHappened(t *testing.T) {
	raw, err := os.ReadFile("../docs/observability-dashboard.json")
	require.NoError(t, err)
	type variable struct{ Name, Type, Query string }
	var dashboard struct {
		Templating struct{ List []variable }
		Panels     []panel
	}
	require.NoError(t, json.Unmarshal(raw, &dashboard))
	assert.Equal(t, []variable{{Name: "datasource", Type: "datasource", Query: "prometheus"}}, dashboard.Templating.List)

	h := emulatedHour(t)
	server := startPrometheus(t, cmp.Or(*keep, t.TempDir()), h.scraped.Bytes())
	assert.Len(t, dashboard.Panels, len(h.happened)+len(h.gauges))
	for _, p := range dashboard.Panels {
		values := server.shown(t, p, h.end)
		if gauges, ok := h.gauges[p.Title]; ok {
			assert.Equal(t, gauges, values, p.Title)
			continue
		}
		happened := h.happened[p.Title]
		assert.NotEmpty(t, happened, p.Title)
		assert.Len(t, values, len(happened), p.Title)
		boundaries := map[bool][]float64{true: lagBuckets, false: buckets}[strings.HasPrefix(p.Title, "Lag")]
		for legend, took := range happened {
			value, what := values[legend], p.Title+": "+legend
			if !strings.Contains(p.Title, "percentile") {
				assert.InDelta(t, len(took), value*time.Hour.Seconds(), 3, what)
				continue
			}
			assert.LessOrEqual(t, boundary(boundaries, took, 0.92, -1), value, what)
			assert.GreaterOrEqual(t, boundary(boundaries, took, 0.98, 0), value, what)
		}
	}
}

// boundary returns the boundary above a quantile, or one that is some boundaries away.
func boundary(boundaries []float64, took []time.Duration, quantile float64, away int) float64 {
	sorted := slices.Sorted(slices.Values(took))
	i, _ := slices.BinarySearch(boundaries, sorted[int(quantile*float64(len(sorted)-1))].Seconds())
	return append([]float64{0}, boundaries...)[min(i+1, len(boundaries))+away]
}

// hour has the metrics of one hour of a back end.
type hour struct {
	begin, end time.Time
	scraped    bytes.Buffer                          // as scraped by Prometheus: OpenMetrics text with times
	happened   map[string]map[string][]time.Duration // by panel and legend, from the observers of package heads
	gauges     map[string]map[string]float64         // by panel and legend: the last values of an inbox
}

// saw records a duration of the hour, unless the panel does not show it.
func (h *hour) saw(panel, legend string, took time.Duration) {
	if h.begin.IsZero() || legend == "" {
		return
	}
	if h.happened[panel] == nil {
		h.happened[panel] = map[string][]time.Duration{}
	}
	h.happened[panel][legend] = append(h.happened[panel][legend], took)
}

func (h *hour) sawAttempt(_ context.Context, a heads.Attempt) {
	route := a.Method + " " + a.Route
	h.saw("Requests by route", route, a.Duration)
	h.saw("Failed requests by cause", errorType(a), a.Duration)
	h.saw("Time of requests, 95th percentile", route, a.Duration)
}

func (h *hour) sawDelivery(_ context.Context, d heads.DeliveryInfo) {
	h.saw("Deliveries by outcome", string(d.Outcome), d.Duration)
	if d.Outcome == heads.DeliveryHandled {
		h.saw("Events by type", string(d.Type), d.Duration)
	}
	h.saw("Time of deliveries, 95th percentile", string(d.Type), d.Duration)
}

func (h *hour) sawToolCall(_ context.Context, i heads.ToolCallInfo) {
	h.saw("Tool calls by outcome", i.Tool+" "+string(i.Outcome), i.Duration)
	h.saw("Time of tool calls, 95th percentile", i.Tool, i.Duration)
}

// between waits for a time between two numbers of milliseconds, more often for a short one.
func between(from, to float64) {
	<-time.After(time.Duration((from + (to-from)*rand.Float64()*rand.Float64()) * float64(time.Millisecond)))
}

// emulatedHour returns the second hour of a back end. What happens in it also happened in the first
// hour, since a rate misses the first value of a new counter.
func emulatedHour(t *testing.T) *hour {
	h := &hour{happened: map[string]map[string][]time.Duration{}}
	synctest.Test(t, func(t *testing.T) {
		const interval = 15 * time.Second
		broken := errors.New("the shop does not answer")
		r, in, i := newRecorder(), &source{waiting: 7, retrying: 3, dead: 2, oldest: time.Now()}, 0
		meters := WithMeterProvider(r.meters)
		Inbox(in, meters)
		tr := transport(func(req *http.Request) (*http.Response, error) {
			between(20, 700)
			if i%16 == 5 {
				<-req.Context().Done()
			}
			return answer(map[int]int{3: 503, 7: 429, 12: 404}[i%16])(req)
		})
		client := newClient(t, "https://api.example.com", tr, Client(meters), heads.WithAttemptTimeout(3*time.Second), heads.WithObserver(heads.Observer[heads.Attempt]{End: h.sawAttempt}))
		events := eventHandler(t, func(context.Context, *heads.Event) error {
			between(5, 300)
			return map[bool]error{true: broken}[i%10 == 6]
		}, Events(meters), heads.WithDeliveryObserver(heads.Observer[heads.DeliveryInfo]{End: h.sawDelivery}))
		tools := toolHandler(t, func(ctx context.Context, _ struct{}) (string, error) {
			between(50, 1500)
			switch i % 12 {
			case 2:
				return "", heads.ToolError{Message: "There is no such order"}
			case 5:
				return "", broken
			case 7:
				<-ctx.Done()
			}
			return "On its way.", ctx.Err()
		}, Tools(meters), heads.WithToolTimeout(3*time.Second), heads.WithToolObserver(heads.Observer[heads.ToolCallInfo]{End: h.sawToolCall}))
		require.NoError(t, heads.AddTool(tools, "opening_hours", "Tells when the shop is open.", func(context.Context, struct{}) (string, error) {
			between(5, 40)
			return "From nine to five.", nil
		}))

		for start := time.Now(); i <= int(2*time.Hour/interval); i++ {
			if time.Since(start) == time.Hour {
				h.begin = time.Now()
			}
			if !h.begin.IsZero() {
				writeOpenMetrics(&h.scraped, r.metrics(t))
			}
			h.end = time.Now()
			_, _ = client.Heads.Get(t.Context(), headID)
			_ = client.Heads.Update(t.Context(), headID, heads.NewHeadUpdate().Greetings("Hello!"))
			deliver(t, events, eventTypes[i%len(eventTypes)], map[bool]string{true: sharedKey, false: "another key"}[i%7 != 4])
			callTool(t, tools, "find", "{}")
			callTool(t, tools, "opening_hours", "{}")
			lag, err := time.Duration(rand.Float64()*rand.Float64()*140*float64(time.Second)), map[bool]error{true: broken}[i%5 == 3]
			in.attempt(t.Context(), lag, err)
			h.saw("Attempts of the inbox", map[bool]string{true: "handled", false: "failed"}[err == nil], lag)
			h.saw("Lag of handled events, 95th percentile", map[bool]string{true: "lag"}[err == nil], lag)
			<-time.After(time.Until(h.end.Add(interval)))
			synctest.Wait()
		}
		h.scraped.WriteString("# EOF\n")
		h.gauges = map[string]map[string]float64{
			"Events in the inbox":             {"waiting": 7, "retrying": 3, "dead": 2},
			"Age of the oldest waiting event": {"oldest": h.end.Sub(in.oldest).Seconds()},
		}
	})
	return h
}

// writeOpenMetrics writes the metrics under the names that the exporters of OpenTelemetry use, with
// the time.
func writeOpenMetrics(w *bytes.Buffer, metrics map[string]metricdata.Metrics) {
	for name, m := range metrics {
		if m.Unit == "s" {
			name += "_seconds"
		}
		sample := func(suffix string, value any, set attribute.Set, more ...string) {
			for _, a := range set.ToSlice() {
				more = append(more, fmt.Sprintf("%s=%q", strings.ReplaceAll(string(a.Key), ".", "_"), a.Value.String()))
			}
			fmt.Fprintf(w, "%s%s{%s} %v %d\n", strings.ReplaceAll(name, ".", "_"), suffix, strings.Join(more, ","), value, time.Now().Unix())
		}
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				sample("_total", p.Value, p.Attributes)
			}
		case metricdata.Gauge[int64]:
			sample("", data.DataPoints[0].Value, attribute.Set{})
		case metricdata.Gauge[float64]:
			sample("", data.DataPoints[0].Value, attribute.Set{})
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				sum := uint64(0)
				for i, n := range p.BucketCounts {
					sum += n
					sample("_bucket", sum, p.Attributes, fmt.Sprintf("le=%q", fmt.Sprint(append(p.Bounds, math.Inf(1))[i])))
				}
				sample("_count", p.Count, p.Attributes)
				sample("_sum", p.Sum, p.Attributes)
			}
		}
	}
}

// prometheus is the base URL of the test's Prometheus server.
type prometheus string

var listening = regexp.MustCompile(`msg="Listening on".* address=(\S+)`)

// startPrometheus starts a server that ends with the test. Its data, which is OpenMetrics text with
// times, is in dir.
func startPrometheus(t *testing.T, dir string, openMetrics []byte) prometheus {
	t.Helper()
	text := filepath.Join(t.TempDir(), "openmetrics")
	require.NoError(t, os.WriteFile(text, openMetrics, 0o600))
	out, err := exec.Command("promtool", "tsdb", "create-blocks-from", "openmetrics", "-q", text, dir).CombinedOutput()
	require.NoError(t, err, "promtool and prometheus are needed; they are in Debian's package prometheus\n%s", out)

	cmd := exec.Command("prometheus", "--config.file", os.DevNull, "--storage.tsdb.path", dir, "--web.listen-address", "127.0.0.1:0")
	log, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	seen := ""
	for lines := bufio.NewScanner(log); lines.Scan(); {
		seen += lines.Text() + "\n"
		if match := listening.FindStringSubmatch(seen); match != nil && strings.Contains(seen, "Server is ready") { // in any order
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return prometheus("http://" + match[1])
		}
	}
	require.Fail(t, "prometheus has ended", seen)
	return ""
}

var label = regexp.MustCompile(`{{\w+}}`)

// shown returns the values that a panel shows of the hour before a time, by legend.
func (server prometheus) shown(t *testing.T, p panel, at time.Time) map[string]float64 {
	t.Helper()
	values, chosen := map[string]float64{}, datasource{Type: "prometheus", UID: "${datasource}"}
	assert.Equal(t, chosen, p.Datasource, p.Title)
	for _, target := range p.Targets {
		assert.Equal(t, chosen, target.Datasource, p.Title)
		query := url.Values{"query": {strings.ReplaceAll(target.Expr, "$__rate_interval", "1h")}, "time": {at.Format(time.RFC3339)}}
		response, err := http.PostForm(string(server)+"/api/v1/query", query)
		require.NoError(t, err)
		defer response.Body.Close()
		var answer struct {
			Error string
			Data  struct {
				Result []struct {
					Metric map[string]string
					Value  [2]any // the time, and the value as text
				}
			}
		}
		require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
		require.Empty(t, answer.Error, p.Title)
		for _, r := range answer.Data.Result {
			legend := label.ReplaceAllStringFunc(target.LegendFormat, func(l string) string {
				assert.Contains(t, r.Metric, strings.Trim(l, "{}"), "%s: the legend would be empty", p.Title)
				return r.Metric[strings.Trim(l, "{}")]
			})
			assert.NotContains(t, values, legend, "%s: two lines have the legend %s", p.Title, legend)
			values[legend], err = strconv.ParseFloat(r.Value[1].(string), 64)
			require.NoError(t, err)
		}
	}
	return values
}
