package scenario

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/similar"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
)

// Stand-ins for what is not known before a scenario runs.
const (
	someBackend = "http://127.0.0.1:1"
	someService = "http://127.0.0.1:2"
)

// check finds the faults of a scenario that its values have together: heads that apply
// would refuse, variables that are not set or not yet saved, unknown heads and
// sessions.
func (r *fileReader) check(s *Scenario) {
	vars := s.standIns()
	r.fault(vars.faults(s.backend.sharedKey)...)
	records, faults := s.setUp(context.Background(), vars, rand.New(rand.NewPCG(1, 1)), "key")
	r.fault(faults...)
	if records == nil {
		return
	}
	for _, v := range []*yamltext.Value{s.backend.start, s.backend.env, s.backend.ready, s.env} {
		r.fault(vars.faults(v)...)
	}
	f := flow{r: r, vars: vars, heads: records.heads}
	for _, st := range s.steps {
		f.step(st)
	}
}

func (s *Scenario) standIns() variables {
	vars := variables{}
	vars.set(varPort, "1")
	vars.set(varTemp, "temp")
	vars.set(varBaseURL, someService)
	vars.set(varBackend, someBackend)
	if s.backend.url != "" {
		vars.set(varBackend, s.backend.url)
	}
	return vars
}

// flow follows the steps of a scenario, to know what each of them can refer to.
type flow struct {
	r        *fileReader
	vars     variables
	heads    []head
	sessions []string
	saved    []string // from answers
}

func (f *flow) step(st *step) {
	opens := slices.Contains([]string{"say", "user", "call"}, st.action)
	f.head(st.Get("head"))
	if session := st.Get("session"); session != nil && !opens && !hasReference(session.Text) && !slices.Contains(f.sessions, session.Text) {
		f.r.faultf(session, "no step has opened a session %q%s; it opens at its first say, user or call", shown(session.Text), similar.Hint(session.Text, f.sessions))
	}
	if st.action == "events" && len(f.sessions) == 0 {
		f.r.faultf(st.Value, "there is no session yet, so there are no events; a session opens at its first say, user or call")
	}
	if opens {
		name := st.Get("session").String()
		f.sessions = append(f.sessions, name)
		// Its own texts may have the session's id.
		f.vars.set(varSession, "00000000-0000-4000-8000-000000000000")
		if name != "" {
			f.vars.set(varSession+":"+name, "00000000-0000-4000-8000-000000000000")
		}
	}
	f.r.fault(f.vars.faults(st.Value)...)
	if st.action == "run" {
		f.shellText(st.arg)
	}
	if save := st.Get("save"); save != nil {
		for _, m := range save.Members {
			f.vars.set(m.Key, "saved")
			f.saved = append(f.saved, m.Key)
		}
	}
}

// shellText refuses what answers have in a text for the shell, which would read it as
// commands.
func (f *flow) shellText(v *yamltext.Value) {
	if v.Kind != yamltext.Text {
		return
	}
	for _, name := range yamltext.Names(v.Text) {
		if slices.Contains(f.saved, name) {
			f.r.faultf(v, "${%s} is from an answer, in which the shell would read commands; write the words as a list, or write \"$%s\", a variable of the shell", name, name)
		}
	}
}

// head checks a label or an id.
func (f *flow) head(v *yamltext.Value) {
	if v == nil || hasReference(v.Text) {
		return
	}
	if _, ok := findHead(f.heads, v.Text); !ok {
		f.r.faultf(v, "there is no head %q%s; use the label or the id of one", shown(v.Text), similar.Hint(v.Text, labelsOf(f.heads)))
	}
}
