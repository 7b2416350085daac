package headsotel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

// hour has the metrics of one hour of a program that was started earlier.
type hour struct {
	begin, end time.Time
	scraped    bytes.Buffer // as scraped by Prometheus: OpenMetrics text with times

	mu       sync.Mutex
	happened map[string]durations          // by panel, from the observers of package heads
	gauges   map[string]map[string]float64 // by panel and legend: the last values of an inbox
}

// durations has the durations of attempts, deliveries or tool calls, by legend.
type durations map[string][]time.Duration

// saw records a duration between begin and end, unless the panel does not show it.
func (h *hour) saw(panel, legend string, took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.happened[panel] == nil {
		h.happened[panel] = durations{}
	}
	if legend != "" && !h.begin.IsZero() && h.end.IsZero() {
		h.happened[panel][legend] = append(h.happened[panel][legend], took)
	}
}

// sawGauge records the current value of a gauge.
func (h *hour) sawGauge(panel, legend string, value float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gauges[panel] == nil {
		h.gauges[panel] = map[string]float64{}
	}
	h.gauges[panel][legend] = value
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

// mark sets begin or end to now, after everything before has been recorded.
func (h *hour) mark(at *time.Time) {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	*at = time.Now()
}

// emulatedHour returns the second hour of a back end. Each failure in it also happened in the first
// hour, since a rate misses the first value of a new counter.
func emulatedHour(t *testing.T) *hour {
	h := &hour{happened: map[string]durations{}, gauges: map[string]map[string]float64{}}
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t, h)
		<-time.After(time.Until(time.Now().Truncate(time.Hour).Add(8 * time.Hour)))
		p.oneHour()
		h.mark(&h.begin)
		p.work.Go(p.scrape)
		p.oneHour()
		h.mark(&h.end)
		p.work.Wait()
		p.emulator.Close()
	})
	return h
}

// program is a back end with an emulator in a testing/synctest bubble.
type program struct {
	*hour
	t        *testing.T
	recorder *recorder
	emulator *headstest.Emulator
	inbox    *emulatedInbox
	client   *heads.Client
	heads    []string
	work     sync.WaitGroup
}

func newProgram(t *testing.T, h *hour) *program {
	mux := http.NewServeMux()
	p := &program{hour: h, t: t, recorder: newRecorder()}
	meters := WithMeterProvider(p.recorder.meters)
	p.inbox = &emulatedInbox{hour: h, waiting: map[int]time.Time{}, retrying: map[int]bool{}}
	Inbox(p.inbox, meters)
	p.emulator = headstest.NewEmulator(headstest.WithDeliveryHandler(mux), headstest.WithLatency(20*time.Millisecond))
	p.emulator.Inject(headstest.Fault{Latency: 120 * time.Millisecond, Share: 0.3})
	p.client = p.emulator.Client(Client(meters), heads.WithAttemptTimeout(3*time.Second), heads.WithObserver(heads.Observer[heads.Attempt]{End: h.sawAttempt}))
	events, err := heads.NewEventHandler(p.client.Webhooks.KeySource(), p.handle, Events(meters), heads.WithDeliveryObserver(heads.Observer[heads.DeliveryInfo]{End: h.sawDelivery}))
	require.NoError(t, err)
	tools, err := heads.NewToolHandler("https://app.example.test/tools", Tools(meters), heads.WithToolObserver(heads.Observer[heads.ToolCallInfo]{End: h.sawToolCall}))
	require.NoError(t, err)
	require.NoError(t, heads.AddTool(tools, "find_order", "Finds an order.", findOrder))
	require.NoError(t, heads.AddTool(tools, "opening_hours", "Tells when the shop is open.", openingHours))
	mux.Handle("/events", events)
	mux.Handle("/tools/", tools)
	for range 4 {
		visual := p.emulator.AddVisual(headstest.Visual{})
		head := p.emulator.AddHead(headstest.Head{HeadVisualID: visual, TTSProvider: "azure", TTSVoice: "en-US-AriaNeural", OperationMode: heads.OperationModeOC})
		p.heads = append(p.heads, head)
		_, err := p.client.Webhooks.Ensure(t.Context(), heads.WebhookSpec{HeadID: head, URL: "https://app.example.test/events", Events: eventTypes}, heads.EnsureOptions{})
		require.NoError(t, err)
		_, err = p.client.ConversationSettings.SetTools(t.Context(), head, tools.Tools()...)
		require.NoError(t, err)
	}
	return p
}

// random returns a duration between two numbers of milliseconds, more often a short one.
func random(from, to float64) time.Duration {
	return time.Duration((from + (to-from)*rand.Float64()*rand.Float64()) * float64(time.Millisecond))
}

type orderArguments struct {
	Number int `json:"number" jsonschema:"Number of the order"`
}

func findOrder(ctx context.Context, in orderArguments) (string, error) {
	<-time.After(random(50, 1500))
	switch {
	case in.Number%10 == 0:
		return "", heads.ToolError{Message: "There is no such order; ask the user for another number"}
	case in.Number%33 == 0:
		return "", errors.New("the shop does not answer")
	case in.Number%3 == 0 && time.Now().Minute() == 53:
		<-ctx.Done()
		return "", ctx.Err()
	}
	return "On its way.", nil
}

func openingHours(context.Context, struct{}) (string, error) {
	<-time.After(random(5, 40))
	return "From nine to five.", nil
}

// handle is the event function.
func (p *program) handle(ctx context.Context, e *heads.Event) error {
	p.work.Go(p.inbox.handle)
	<-time.After(random(5, 300))
	switch {
	case time.Now().Minute()/2 == 23:
		return errors.New("the database does not answer")
	case e.Type == heads.EventStartConversation:
		_, err := p.client.Heads.Get(ctx, e.HeadID)
		return err
	case time.Now().Minute() == 28 && e.Type == heads.EventInactivityWarning:
		<-time.After(8 * time.Second) // longer than the service waits
	}
	return nil
}

// oneHour has visitors all the time and injects faults.
func (p *program) oneHour() {
	p.at(10, 5, headstest.Fault{Route: "/head/{id}", Status: 503, Share: 0.3})
	p.at(22, 3, headstest.Fault{Status: 429, RetryAfter: 2 * time.Second, Share: 0.3})
	p.at(34, 3, headstest.Fault{Method: http.MethodGet, Latency: 7 * time.Second, Share: 0.3})
	for i := range 720 {
		switch i {
		case 200:
			p.emulator.InjectDelivery(headstest.DeliveryFault{CorruptSignature: true, Times: 15})
		case 350:
			p.emulator.InjectDelivery(headstest.DeliveryFault{Age: 25 * time.Hour, Times: 20})
		case 480:
			p.emulator.InjectDelivery(headstest.DeliveryFault{Duplicate: true, Times: 60})
		}
		p.work.Go(func() { p.visit(i) })
		if i%5 == 0 {
			p.work.Go(p.look)
		}
		<-time.After(time.Hour / 720)
	}
}

// at injects a fault for some minutes.
func (p *program) at(minute, minutes time.Duration, f headstest.Fault) {
	time.AfterFunc(minute*time.Minute, func() {
		remove := p.emulator.Inject(f)
		time.AfterFunc(minutes*time.Minute, remove)
	})
}

// visit is a conversation of a visitor with two tool calls.
func (p *program) visit(i int) {
	<-time.After(random(0, 10000))
	session := p.emulator.StartSession(p.heads[i%len(p.heads)])
	p.check(session.UserMessage("Where is my order?"))
	var order map[string]any
	if i%25 != 24 {
		order = map[string]any{"number": i + 1}
	}
	p.callTool(session, "find_order", order)
	p.callTool(session, "opening_hours", nil)
	end := session.Close
	if i%3 == 2 {
		end = session.Timeout
		p.check(session.Inactive())
	}
	<-time.After(random(1000, 60000))
	p.check(end())
}

func (p *program) callTool(s *headstest.Session, tool string, arguments map[string]any) {
	<-time.After(random(1000, 20000))
	_, err := s.CallTool(p.t.Context(), tool, arguments)
	p.check(err)
}

func (p *program) check(err error) {
	if err != nil {
		p.t.Error(err)
	}
}

// look reads and changes a head. Calls may fail.
func (p *program) look() {
	head := p.heads[rand.N(len(p.heads))]
	_, _ = p.client.Heads.Get(p.t.Context(), head)
	_ = p.client.Heads.Update(p.t.Context(), head, heads.NewHeadUpdate().Greetings("Hello!"))
	_, _ = p.client.Webhooks.List(p.t.Context(), head)
	_, _ = p.client.ConversationSettings.Get(p.t.Context(), head)
}

// scrape collects the metrics from the beginning to the end of an hour.
func (p *program) scrape() {
	const interval = 15 * time.Second
	for range time.Hour/interval + 1 {
		writeOpenMetrics(&p.scraped, p.recorder.metrics(p.t))
		<-time.After(interval)
	}
	p.scraped.WriteString("# EOF\n")
}

// writeOpenMetrics writes the metrics under the names that the exporters of OpenTelemetry use, with
// the time.
func writeOpenMetrics(w *bytes.Buffer, metrics map[string]metricdata.Metrics) {
	for name, m := range metrics {
		if m.Unit == "s" {
			name += "_seconds"
		}
		sample := func(suffix string, value any, labels ...string) {
			fmt.Fprintf(w, "%s%s{%s} %v %d\n", strings.ReplaceAll(name, ".", "_"), suffix, strings.Join(labels, ","), value, time.Now().Unix())
		}
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				sample("_total", p.Value, labels(p.Attributes)...)
			}
		case metricdata.Gauge[int64]:
			for _, p := range data.DataPoints {
				sample("", p.Value, labels(p.Attributes)...)
			}
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				sample("", p.Value, labels(p.Attributes)...)
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				own, sum := labels(p.Attributes), uint64(0)
				for i, n := range p.BucketCounts {
					bound := "+Inf"
					if i < len(p.Bounds) {
						bound = fmt.Sprint(p.Bounds[i])
					}
					sum += n
					sample("_bucket", sum, append(own, fmt.Sprintf("le=%q", bound))...)
				}
				sample("_count", p.Count, own...)
				sample("_sum", p.Sum, own...)
			}
		}
	}
}

func labels(set attribute.Set) (all []string) {
	for _, a := range set.ToSlice() {
		all = append(all, fmt.Sprintf("%s=%q", strings.ReplaceAll(string(a.Key), ".", "_"), a.Value.String()))
	}
	return all
}
