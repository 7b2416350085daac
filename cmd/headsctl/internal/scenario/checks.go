package scenario

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/schema"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/cmd/headsctl/schemas"
	"github.com/headsapi/heads-go/headstest"
)

var testSchema = schema.MustParse(schemas.Test)

// checks are what the schema can't tell of a file.
func (r *fileReader) checks(running bool) schema.Checks {
	checks := schema.Checks{
		"stepProgram":  func(v *yamltext.Value) error { return checkProgram(v, r.folder) },
		"operation":    checkRoute,
		"regexp":       checkRegexp,
		"path":         checkPath,
		"variableName": checkVariableName,
		"duration":     checkDuration, "time": checkDuration,
		"step": func(v *yamltext.Value) error { return checkStep(v, running) },
		"scenario": func(v *yamltext.Value) error {
			r.valid[v] = true
			return nil
		},
	}
	for name, check := range faultChecks {
		checks[name] = check
	}
	return checks
}

// faultChecks are those of a fault.
var faultChecks = schema.Checks{
	"fault": checkFault, "faultTime": checkDuration, "age": checkDuration,
	"faultRequest": func(v *yamltext.Value) error {
		if v.Text == anyRequest {
			return nil
		}
		return checkRoute(v)
	},
}

func checkDuration(v *yamltext.Value) error {
	if _, err := time.ParseDuration(v.Text); v.IsGiven() && err != nil && !hasReference(v.Text) {
		return v.Errorf("%s is not a duration; write one such as 250ms, 2s or 1m", v.Shown())
	}
	return nil
}

func checkRegexp(v *yamltext.Value) error {
	if _, err := regexp.Compile(v.Text); err != nil && !hasReference(v.Text) {
		return v.Errorf("%v; write a regular expression of RE2", err)
	}
	return nil
}

func checkPath(v *yamltext.Value) error {
	if _, err := parsePath(v.Text); err != nil && !hasReference(v.Text) {
		return v.Errorf("%v", err)
	}
	return nil
}

func checkVariableName(v *yamltext.Value) error {
	if slices.Contains(ownVariables, v.Text) {
		return v.Errorf("%s is not a name for a variable; use other letters, digits and _", v.Shown())
	}
	return nil
}

func checkStep(v *yamltext.Value, running bool) error {
	if running && v.Get("backend") != nil {
		return v.Errorf("a back end that runs already (url) can't be killed or started here; use backend: {start: …}")
	}
	events := v.Get("events")
	if events == nil || len(events.Items) == 0 {
		return nil
	}
	for _, item := range events.Items[:len(events.Items)-1] {
		if outcome := item.Get("outcome"); outcome.String() == "retrying" {
			return outcome.Errorf("retrying can only be the last item, since what follows waits behind it; put the rest into a later step")
		}
	}
	return nil
}

// checkProgram checks the words of a program. One with a variable is not looked for.
func checkProgram(v *yamltext.Value, folder string) error {
	if v.Kind != yamltext.List || len(v.Items) == 0 || hasReference(v.Items[0].Text) {
		return nil
	}
	if _, err := findProgram(v.Items[0].Text, folder); err != nil {
		return v.Items[0].Errorf("%v", err)
	}
	return nil
}

// checkFault lets the emulator check a fault.
func checkFault(v *yamltext.Value) error {
	if v.Kind == yamltext.Text {
		return nil
	}
	request, event := readFault(v)
	var err error
	switch {
	case request == nil:
		err = event.Validate()
	case !hasReference(request.Route):
		err = request.Validate()
	}
	if err != nil {
		return v.Errorf("%v", err)
	}
	return nil
}

// checkRoute returns the fault of a method and a route that are no operation of the
// service.
func checkRoute(v *yamltext.Value) error {
	text := v.Text
	method, route, _ := strings.Cut(text, " ")
	route = yamltext.Reference.ReplaceAllString(route, "{id}")
	if (headstest.Fault{Method: method, Route: route}).Validate() == nil {
		return nil
	}
	return v.Errorf("%q is no operation of the service; the nearest one is %s", shown(text), nearestOperation(method, route))
}

var nearestIn = regexp.MustCompile(`the nearest one is ([A-Z]+ [^;"]+)`)

// nearestOperation asks an emulator, which knows all operations.
func nearestOperation(method, route string) string {
	e := headstest.NewEmulator()
	defer e.Close()
	reply := httptest.NewRecorder()
	path := routeParameter.ReplaceAllString(route, "0")
	request, err := http.NewRequest(method, "http://emulator"+path, http.NoBody)
	if err != nil {
		return "GET /head/{id}"
	}
	e.ServeHTTP(reply, request)
	if found := nearestIn.FindStringSubmatch(reply.Body.String()); found != nil {
		return strings.TrimSpace(found[1])
	}
	if allowed := reply.Header().Get("Allow"); allowed != "" { // the path is right
		return strings.TrimSpace(strings.Split(allowed, ",")[0]) + " " + route
	}
	// The path and method are an operation; without a token the answer is 401.
	return method + " " + route
}
