// Package check decides what may be sent to the service and what may be configured:
// ids, URLs, tokens, header names and placeholders. It knows no type of the client.
package check

// Fault is what is wrong with a value. The zero Fault is none.
type Fault struct {
	Problem string // continues the sentence that the name of the value begins
	Remedy  string // what to do, in Go's terms
	Use     string // the method, option or setter that Remedy names; "" if none
}
