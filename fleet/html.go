package fleet

import (
	_ "embed" // for the page
	"html/template"
	"io"
	"math"
	"time"

	heads "github.com/headsapi/heads-go"
)

//go:embed report.html
var pageText string

var page = template.Must(template.New("report").Parse(pageText))

// remedies says what to do next, by reason.
var remedies = map[heads.Reason]string{
	heads.ReasonVisual:         "A new head is needed: only a head whose visual is in mode default can change its mode.",
	heads.ReasonProvider:       "Another voice is needed: give the spec a voice of a provider that can stream.",
	heads.ReasonRefused:        "It can't be had as it is: read the error, change the spec or the head, and run it again.",
	heads.ReasonTemporary:      "Nothing was switched: run it again.",
	heads.ReasonUnknownOutcome: "The switch was sent, and the head was not seen in its new mode: run it again to find out.",
	heads.ReasonAddress:        "The head is converted, but its new access URL is not known: set the base URLs of both modes and run it again.",
}

// pageData is the data of the template.
type pageData struct {
	Environment string

	Started  string
	Duration string
	Total    int
	Outcomes []pageOutcome
	Rows     []pageRow
	Remedies []pageRemedy
	Moves    int
}

type pageOutcome struct {
	Name    Outcome
	Count   int
	Percent float64
}

type pageRow struct {
	*Result
	Old, New, Error, Remedy string
	Milliseconds            int64
}

type pageRemedy struct {
	Reason heads.Reason
	Count  int
	Remedy string
}

// WriteHTML writes the report as one HTML page that loads nothing: totals, a table of all heads
// that can be sorted and filtered, old and new access URLs without their keys, and what to do next.
func (r *Report) WriteHTML(w io.Writer) error {
	data := pageData{
		Environment: r.Environment,
		Started:     r.Started.UTC().Format("2006-01-02 15:04 MST"),
		Duration:    r.Ended.Sub(r.Started).Round(time.Millisecond).String(),
		Total:       len(r.Results),
		Moves:       len(r.Moves()),
	}
	for _, o := range outcomes {
		if n := r.Count(o); n > 0 {
			data.Outcomes = append(data.Outcomes, pageOutcome{o, n, math.Round(float64(n)/float64(len(r.Results))*10000) / 100})
		}
	}
	reasons := map[heads.Reason]int{}
	for i := range r.Results {
		result := &r.Results[i]
		row := pageRow{Result: result, Error: result.errorText(), Remedy: remedies[result.Reason], Milliseconds: result.Duration.Milliseconds()}
		row.Old, row.New = result.addresses()
		data.Rows = append(data.Rows, row)
		reasons[result.Reason]++
	}
	for _, reason := range []heads.Reason{heads.ReasonVisual, heads.ReasonProvider, heads.ReasonRefused, heads.ReasonTemporary, heads.ReasonUnknownOutcome, heads.ReasonAddress} {
		if n := reasons[reason]; n > 0 {
			data.Remedies = append(data.Remedies, pageRemedy{reason, n, remedies[reason]})
		}
	}
	return page.Execute(w, data)
}
