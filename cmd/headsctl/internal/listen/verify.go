package listen

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/recording"
)

// verify compares the signature of an event with the keys. A status that is not 0 is the
// answer to one that goes no further, and the note says why.
func (l *Listener) verify(q *request) (signature string, status int, note string) {
	if l.Keys == nil {
		return recording.SignatureUnverified, 0, ""
	}
	sent := q.entry.Headers[heads.SignatureHeader]
	hint := heads.KeyHint{HeadID: q.entry.HeadID, Request: q.r}
	var tried []string
	for _, hint.Mismatch = range []bool{false, true} {
		keys, err := l.Keys.Keys(q.r.Context(), hint)
		if heads.VerifySignature(q.body, sent, keys...) == nil {
			return recording.SignatureRight, 0, ""
		}
		if err != nil {
			return recording.SignatureUnverified, http.StatusServiceUnavailable, fmt.Sprintf("the keys can't be read: %v", err)
		}
		if hint.Mismatch && slices.Equal(keys, tried) {
			break
		}
		tried = keys
	}
	return SignatureWrong, http.StatusUnauthorized, heads.DiagnoseSignature(q.body, sent, tried...)
}

// KeySources is a source of the keys of several sources.
type KeySources []heads.KeySource

// Keys returns the keys of all sources, and also the error of a source that failed.
func (s KeySources) Keys(ctx context.Context, hint heads.KeyHint) ([]string, error) {
	var all []string
	var failed error
	for _, source := range s {
		keys, err := source.Keys(ctx, hint)
		if err != nil {
			failed = err
		}
		all = append(all, keys...)
	}
	return all, failed
}
