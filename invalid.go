package heads

import (
	"errors"
	"net/url"
	"strings"

	"github.com/headsapi/heads-go/internal/check"
)

// ErrInvalid matches every InvalidError with errors.Is.
var ErrInvalid = errors.New("heads: invalid request")

// InvalidError reports that a request was refused before anything was sent.
type InvalidError struct {
	Operation string // "Heads.Get"
	Field     string // "head id"
	Problem   string // what is wrong, with the given value where it may be shown; it continues the sentence after Field
	Remedy    string // what to do, in Go's terms
	Use       string // the method, option or setter that Remedy names, such as "Webhooks.Ensure"; "" if none
}

// Error returns one sentence: operation, field, problem and remedy.
func (e *InvalidError) Error() string { return "heads: " + e.Operation + ": " + e.reason() }

// reason is the sentence without the operation.
func (e *InvalidError) reason() string {
	text := e.Field + " " + e.Problem
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// Is reports whether target is ErrInvalid.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// invalid returns an InvalidError. The problem continues the sentence that field
// begins, with the given value or a verb. If the remedy names a method, an option
// or a setter, use is its name.
func invalid(operation, field, problem, remedy string, use ...string) error {
	return faultOf(operation, field, fault{Problem: problem, Remedy: remedy, Use: strings.Join(use, "")})
}

// The values of InvalidError.Use and Finding.Use. A program that is not written in
// Go, or whose users are not, has remedies of its own for them.
const (
	useAccessURL         = "Client.AccessURL"
	useAllowUnknownMode  = "ConvertOptions.AllowUnknownMode"
	useBackground        = "context.Background"
	useConvertVoice      = "ConvertOptions.Voice"
	useEnsure            = "Webhooks.Ensure"
	useHeadsGet          = "Heads.Get"
	useHeadsUpdate       = "Heads.Update"
	useKeySource         = "Webhooks.KeySource"
	useNew               = "New"
	useNewHeadUpdate     = "NewHeadUpdate"
	useNewWebhookUpdate  = "NewWebhookUpdate"
	useOperationMode     = "HeadUpdate.OperationMode"
	usePathEscape        = "url.PathEscape"
	usePutTool           = "ConversationSettings.PutTool"
	useQuery             = "Request.Query"
	useRemoveDuplicates  = "EnsureOptions.RemoveDuplicates"
	useReveal            = "Secret.Reveal"
	useSetDelivery       = "Webhooks.SetDelivery"
	useSetVideoStreaming = "Heads.SetVideoStreaming"
	useSettingsModify    = "ConversationSettings.Modify"
	useSettingsTools     = "ConversationSettings.Tools"
	useSystemPrompt      = "HeadUpdate.SystemPrompt"
	useVoice             = "HeadUpdate.Voice"
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
	u, found := check.URL(raw, check.Base(insecure))
	if len(found) > 0 {
		return nil, faultsOf(operation, field, found).join()
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = strings.TrimRight(u.RawPath, "/")
	return u, nil
}

// faultList collects the faults of one call, which are returned together.
type faultList []error

func (l *faultList) add(err error) {
	if err != nil {
		*l = append(*l, err)
	}
}

// join returns nil for no fault, the fault itself for one, and errors.Join for
// more.
func (l faultList) join() error {
	if len(l) == 1 {
		return l[0]
	}
	return errors.Join(l...)
}
