package scenario

import (
	_ "embed" // for the page
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"time"
)

// WriteJSON writes the results as indented JSON.
func (s *Summary) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	results := s.Results
	if results == nil {
		results = []Result{}
	}
	return encoder.Encode(struct {
		Counts     map[Outcome]int `json:"counts"`
		Results    []Result        `json:"results"`
		DurationMS int64           `json:"duration_ms"`
	}{s.Counts(), results, s.Duration.Milliseconds()})
}

// The elements of a JUnit report.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		ClassName string        `xml:"classname,attr"`
		Name      string        `xml:"name,attr"`
		File      string        `xml:"file,attr"`
		Line      int           `xml:"line,attr"`
		Time      string        `xml:"time,attr"`
		Failure   *junitFailure `xml:"failure"`
		Skipped   *struct{}     `xml:"skipped"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the results as JUnit XML: a testsuite for each file.
func (s *Summary) WriteJUnit(w io.Writer) error {
	all := junitSuites{Tests: len(s.Results), Failures: s.Count(Failed), Skipped: s.Count(Skipped), Time: seconds(s.Duration)}
	at := map[string]int{}
	times := map[string]time.Duration{}
	for i := range s.Results {
		r := &s.Results[i]
		if _, known := at[r.File]; !known {
			at[r.File] = len(all.Suites)
			all.Suites = append(all.Suites, junitSuite{Name: r.File})
		}
		suite := &all.Suites[at[r.File]]
		suite.add(r)
		times[r.File] += r.Duration
		suite.Time = seconds(times[r.File])
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (suite *junitSuite) add(r *Result) {
	c := junitCase{ClassName: className(r.File), Name: r.Name, File: r.File, Line: r.Line, Time: seconds(r.Duration)}
	suite.Tests++
	switch r.Outcome {
	case Failed:
		suite.Failures++
		c.Failure = &junitFailure{r.Problem, strings.Join(r.Lines(), "\n")}
	case Skipped:
		suite.Skipped++
		c.Skipped = &struct{}{}
	}
	suite.Cases = append(suite.Cases, c)
}

// className is the name of a file as readers of JUnit group by: without its ending,
// and with dots between folders.
func className(file string) string {
	for _, ending := range []string{".test.yaml", ".test.yml", ".yaml", ".yml", ".json"} {
		if name, ok := strings.CutSuffix(file, ending); ok {
			file = name
			break
		}
	}
	return strings.Trim(strings.NewReplacer("/", ".", `\`, ".").Replace(file), ".")
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

//go:embed report.html
var pageText string

var page = template.Must(template.New("report").Parse(pageText))

type pageData struct {
	Total    int
	Duration string
	Seed     uint64
	Outcomes []pageOutcome
	Rows     []pageRow
}

type pageOutcome struct {
	Name    Outcome
	Count   int
	Percent float64
}

type pageRow struct {
	*Result
	Text         string
	Milliseconds int64
}

// WriteHTML writes the results as one HTML page that loads nothing: totals, and a table
// of all scenarios that can be sorted and filtered.
func (s *Summary) WriteHTML(w io.Writer) error {
	data := pageData{Total: len(s.Results), Duration: roundTime(s.Duration).String(), Seed: s.Seed}
	for _, o := range allOutcomes {
		if n := s.Count(o); n > 0 {
			data.Outcomes = append(data.Outcomes, pageOutcome{o, n, math.Round(float64(n)/float64(len(s.Results))*10000) / 100})
		}
	}
	for i := range s.Results {
		r := &s.Results[i]
		row := pageRow{Result: r, Milliseconds: r.Duration.Milliseconds()}
		if r.Failure != nil {
			row.Text = strings.Join(r.Lines(), "\n")
		}
		data.Rows = append(data.Rows, row)
	}
	return page.Execute(w, data)
}
