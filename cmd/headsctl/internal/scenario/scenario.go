// Package scenario runs scenarios of a back end for heads: a file says what users and
// the service do, and what the back end must make of it. The service is an emulator,
// the back end is a process of its own or one that runs already, and everything
// between them is HTTP over loopback.
package scenario

import (
	"fmt"
	"time"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/fleet"
)

// Reader reads the heads of a scenario file.
type Reader struct {
	// Heads reads a list of entries of heads.yaml. Paths in it are relative to the
	// folder.
	Heads func(entries *yamltext.Value, folder string) ([]fleet.Spec, error)

	// HeadsFile reads a heads.yaml, for one of its environments or "".
	HeadsFile func(path, environment string) ([]fleet.Spec, error)

	// CallbackHosts are the hosts of --allow-host, as headstest.WithCallbackHosts takes
	// them.
	CallbackHosts map[string]string

	// Plain returns the text of an error of the library for people at a terminal.
	Plain func(error) string
}

// Scenario is one scenario of a file.
type Scenario struct {
	File string // as it was named
	Line int
	Name string

	reader  *Reader
	folder  string // of the file
	backend *backendSpec
	heads   *headsSpec
	seed    *yamltext.Value // the name of the seed file
	seeded  *yamltext.Value // the content of the seed file
	service serviceSpec
	env     *yamltext.Value // beside that of the back end
	timeout time.Duration
	steps   []*step
}

// Title is how lists and --only name the scenario.
func (s *Scenario) Title() string { return fmt.Sprintf("%s:%d %s", s.File, s.Line, s.Name) }

// Address is where the running back end expects the service, or "". Scenarios of one
// address run one after another.
func (s *Scenario) Address() string { return s.backend.service }

// place returns FILE:LINE:COL of a value.
func (s *Scenario) place(v *yamltext.Value) string {
	return fmt.Sprintf("%s:%d:%d", s.File, v.Line, v.Column)
}

// backendSpec is the back end of a file.
type backendSpec struct {
	at          *yamltext.Value
	start       *yamltext.Value // a list of words or a text for the shell; nil for one that runs
	dir         string
	env         *yamltext.Value
	ready       *yamltext.Value // nil: the port takes a connection
	readyWithin time.Duration
	sharedKey   *yamltext.Value // nil: generated
	url         string          // of one that runs; without a slash at the end
	service     string          // the address at which it expects the service
	token       string          // what it sends; "": generated
	secrets     []string        // what no output may show
}

// serviceSpec is how the emulator behaves.
type serviceSpec struct {
	retry                     []time.Duration
	eventTimeout, toolTimeout time.Duration
	timestamps, responses     string
}

var defaultService = serviceSpec{
	retry:        []time.Duration{50 * time.Millisecond, 250 * time.Millisecond, 1250 * time.Millisecond},
	eventTimeout: 5 * time.Second, toolTimeout: 30 * time.Second,
	timestamps: "plain", responses: "empty",
}

// headsSpec is the heads of a file or a scenario.
type headsSpec struct {
	at          *yamltext.Value
	inline      bool
	specs       []fleet.Spec    // of a heads.yaml; those of inline entries are read when their variables are known
	replace     *yamltext.Value // of a heads.yaml; nil for none
	ids, labels []string        // as far as the file has them
}

// entry returns the value to point at for the n-th head.
func (h *headsSpec) entry(n int) *yamltext.Value {
	if h.inline && n < len(h.at.Items) {
		return h.at.Items[n]
	}
	return h.at
}

// step is one action with its modifiers.
type step struct {
	*yamltext.Value // the whole step

	number        int
	action        string
	arg           *yamltext.Value
	within, stays time.Duration
}

// Defaults of a step and a scenario.
const (
	defaultWithin      = 5 * time.Second
	defaultTimeout     = 60 * time.Second
	defaultReadyWithin = 30 * time.Second
)
