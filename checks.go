package heads

import (
	"net/url"
	"strings"

	"github.com/headsapi/heads-go/internal/check"
)

// fault is what is wrong with a field, for an InvalidError.
type fault = check.Fault

// faultOf returns f as the InvalidError about a field, or nil if f is no fault.
func faultOf(operation, field string, f fault) error {
	if !f.Found() {
		return nil
	}
	return &InvalidError{Operation: operation, Field: field, Problem: f.Problem, Remedy: f.Remedy, Use: f.Use}
}

func faultsOf(operation, field string, found []fault) (faults faultList) {
	for _, f := range found {
		faults.add(faultOf(operation, field, f))
	}
	return faults
}

// checkText returns a fault for a required text that is blank. The remedy ends
// the sentence.
func checkText(operation, field, text, remedy string, use ...string) error {
	return faultOf(operation, field, check.Text(text, remedy, use...))
}

func checkHeadID(operation, id string) error {
	return faultOf(operation, "head id", check.HeadID(id))
}

func checkPathID(operation, field, id string) error {
	return faultOf(operation, field, check.PathID(id))
}

func checkWebhookID(operation string, id int64) error {
	return faultOf(operation, "webhook id", check.WebhookID(id))
}

// checkCallbackURL refuses a URL that the service could not or would not call.
func checkCallbackURL(operation, field, raw string) error {
	_, found := check.URL(raw, check.Callback)
	return faultsOf(operation, field, found).join()
}

// checkBaseURL returns the base URL of the service, or of access URLs, without a slash
// at its end.
func checkBaseURL(operation, field, raw string, insecure bool) (*url.URL, error) {
	purpose := check.Base
	if insecure {
		purpose = check.InsecureBase
	}
	u, found := check.URL(raw, purpose)
	if len(found) > 0 {
		return nil, faultsOf(operation, field, found).join()
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = strings.TrimRight(u.RawPath, "/")
	return u, nil
}

// cleanAccessBase checks one URL of WithAccessBases, if it was given, and removes the
// slash at its end.
func cleanAccessBase(field string, base *string, insecure bool) error {
	if *base == "" {
		return nil
	}
	u, err := checkBaseURL("New", field, *base, insecure)
	if err == nil {
		*base = u.String()
	}
	return err
}
