// Package check decides what may be sent to the service and what may be configured:
// ids, URLs, tokens, header names and placeholders. It knows no type of the client.
package check

import "strings"

// Fault is what is wrong with a value. The zero Fault is none.
type Fault struct {
	Problem string // continues the sentence that the name of the value begins
	Remedy  string // what to do, in Go's terms
	Use     string // the method, option or setter that Remedy names; "" if none
}

// Found reports whether there is a fault.
func (f Fault) Found() bool { return f.Problem != "" }

// The values of Fault.Use.
const (
	useHeadsGet     = "Heads.Get"
	useInsecureHTTP = "WithInsecureHTTP"
	usePathToken    = "WithPathToken"
	useTokenSource  = "WithTokenSource"
)

// Text returns a fault for a required text that is blank. The remedy ends the sentence.
func Text(text, remedy string, use ...string) Fault {
	if strings.TrimSpace(text) == "" {
		return Fault{"is blank", remedy, strings.Join(use, "")}
	}
	return Fault{}
}
