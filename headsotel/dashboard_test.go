package headsotel

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var keep = flag.String("keep", "", "empty directory to keep the emulated hour in, as the data of a Prometheus server")

// dashboard has the parts of a Grafana dashboard that the test needs.
type dashboard struct {
	Templating struct{ List []variable }
	Panels     []panel
}

type variable struct{ Name, Type, Query string }

type panel struct {
	Title      string
	Datasource datasource
	Targets    []target
}

type datasource struct{ Type, UID string }

type target struct {
	Expr, LegendFormat string
	Datasource         datasource
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	raw, err := os.ReadFile("../docs/observability-dashboard.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &d))
	return d
}

func TestDashboardAsksTheDataSourceThatIsChosen(t *testing.T) {
	d := readDashboard(t)
	assert.Equal(t, []variable{{Name: "datasource", Type: "datasource", Query: "prometheus"}}, d.Templating.List)
	for _, p := range d.Panels {
		chosen := datasource{Type: "prometheus", UID: "${datasource}"}
		assert.Equal(t, chosen, p.Datasource, p.Title)
		for _, target := range p.Targets {
			assert.Equal(t, chosen, target.Datasource, p.Title)
		}
	}
}

var label = regexp.MustCompile(`{{\w+}}`)

// shown returns the values of a panel at a time, by legend.
func shown(t *testing.T, server prometheus, p panel, at time.Time, before string) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for _, target := range p.Targets {
		for _, s := range server.query(t, strings.ReplaceAll(target.Expr, "$__rate_interval", before), at) {
			legend := label.ReplaceAllStringFunc(target.LegendFormat, func(l string) string {
				assert.Contains(t, s.labels, strings.Trim(l, "{}"), "%s: the legend would be empty", p.Title)
				return s.labels[strings.Trim(l, "{}")]
			})
			assert.NotContains(t, values, legend, "%s: two lines have the legend %s", p.Title, legend)
			values[legend] = s.value
		}
	}
	return values
}

// bucketOf returns the boundaries around a quantile.
func (d durations) bucketOf(buckets []float64, legend string, quantile float64) (low, high float64) {
	sorted := slices.Sorted(slices.Values(d[legend]))
	seconds := sorted[int(quantile*float64(len(sorted)-1))].Seconds()
	i, _ := slices.BinarySearch(buckets, seconds)
	if i > 0 {
		low = buckets[i-1]
	}
	return low, buckets[min(i, len(buckets)-1)]
}

func TestDashboardShowsWhatHappened(t *testing.T) {
	h := emulatedHour(t)
	dir := *keep
	if dir == "" {
		dir = t.TempDir()
	}
	server := startPrometheus(t, dir, h.scraped.Bytes())

	panels := readDashboard(t).Panels
	assert.Len(t, panels, len(h.happened)+len(h.gauges))
	for _, p := range panels {
		values := shown(t, server, p, h.end, "1h")
		if gauges, ok := h.gauges[p.Title]; ok {
			assert.Equal(t, gauges, values, p.Title)
			continue
		}
		happened := h.happened[p.Title]
		assert.NotEmpty(t, happened, p.Title)
		boundaries := buckets
		if strings.HasPrefix(p.Title, "Lag") {
			boundaries = lagBuckets
		}
		for legend := range happened {
			assert.Contains(t, values, legend, p.Title)
		}
		for legend, value := range values {
			what := p.Title + ": " + legend
			switch {
			case !strings.Contains(p.Title, "percentile"):
				assert.InDelta(t, len(happened[legend]), value*time.Hour.Seconds(), 8, what) // a rate misses the first value of a new counter
			case len(happened[legend]) == 0:
				assert.True(t, math.IsNaN(value), what)
			default:
				low, _ := happened.bucketOf(boundaries, legend, 0.92)
				_, high := happened.bucketOf(boundaries, legend, 0.98)
				assert.LessOrEqual(t, low, value, what)
				assert.GreaterOrEqual(t, high, value, what)
			}
		}
	}
}
