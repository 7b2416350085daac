package heads

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/headsapi/heads-go/internal/check"
	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/rawjson"
	"github.com/headsapi/heads-go/internal/transport"
)

// Request is an operation of the service that has no method here, for
// Client.Do.
type Request struct {
	Method     string      // GET, PUT, PATCH, POST or DELETE
	Path       string      // below the base URL, escaped, beginning with one "/"
	Route      string      // label for observers and logs, such as "/voice/{id}"; "" means "other"
	Query      url.Values  // added to the path
	Body       any         // nil; []byte, json.RawMessage and Raw as they are; anything else through encoding/json. Not with GET
	Header     http.Header // added, and instead of the client's own Accept, Content-Type and User-Agent
	Repeatable bool        // a POST that may be retried as a PUT is
}

// Do calls an operation that has no method here. Token, retries, limits and
// redaction are the same as for every other method; any status from 200 to 299
// is success. So is 404 for a DELETE that follows an attempt without an answer,
// or with a 5xx.
//
// Do returns an InvalidError and sends nothing for another method, for a path
// that has a host, a query, a fragment, a backslash, a broken escape or a dot
// segment, for a body with GET or one that encoding/json can't write, and for
// the headers that the client sets itself: Authorization, Host, Content-Length,
// Transfer-Encoding and Cookie. An empty body is no body.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	var faults faultList
	faults.add(checkMethod(r.Method))
	path, err := checkPath(r.Path)
	faults.add(err)
	header, err := checkHeader(r.Header)
	faults.add(err)
	body, err := r.encodeBody()
	faults.add(err)
	if err := faults.join(); err != nil {
		return nil, err
	}
	op := transport.Operation{Name: opDo, Method: r.Method, Route: cmp.Or(r.Route, "other"), Repeatable: r.Repeatable || r.Method != http.MethodPost}
	call, err := c.shared().send(ctx, op.At(path, r.Path), transport.Request{RawQuery: r.Query.Encode(), Header: header, Body: body})
	if err != nil {
		return nil, err
	}
	defer call.Release()
	return newResponse(call), nil
}

const opDo = "Client.Do"

func checkMethod(method string) error {
	switch method {
	case http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodPost, http.MethodDelete:
		return nil
	}
	return invalid(opDo, "method", fmt.Sprintf("%s is not supported", quote(method)), "use GET, PUT, PATCH, POST or DELETE")
}

// checkPath returns the path unescaped. Its errors don't show the path, which
// may hold a secret.
func checkPath(escaped string) (string, error) {
	refuse := func(problem, remedy string, use ...string) (string, error) {
		return "", invalid(opDo, "path", problem, remedy, use...)
	}
	switch {
	case !strings.HasPrefix(escaped, "/"):
		return refuse(`does not begin with "/"`, `give the path below the base URL, such as "/voice"`)
	case strings.HasPrefix(escaped, "//"):
		return refuse(`begins with "//", which names a host`, `give the path below the base URL`)
	case strings.ContainsAny(escaped, "?#"):
		return refuse("has a query or a fragment", "use Request.Query, or escape the character", useQuery)
	case strings.Contains(escaped, `\`):
		return refuse("has a backslash", "leave it out")
	case strings.IndexFunc(escaped, func(r rune) bool { return r <= ' ' || r >= 0x7f }) >= 0:
		return refuse("has a space or another character that must be escaped", "use url.PathEscape on each segment", usePathEscape)
	}
	path, err := url.PathUnescape(escaped)
	if err != nil {
		return refuse("has a broken escape", "use url.PathEscape on each segment", usePathEscape)
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return refuse("has a dot segment, which would lead to another operation", "leave it out")
		}
	}
	if strings.Contains(path, `\`) {
		return refuse("has an escaped backslash, which a server may take for a slash", "leave it out")
	}
	return path, nil
}

// checkHeader returns the header under canonical names. Its errors don't show
// values.
func checkHeader(given http.Header) (http.Header, error) {
	header := make(http.Header, len(given))
	var faults faultList
	for _, name := range slices.Sorted(maps.Keys(given)) {
		canonical := http.CanonicalHeaderKey(name)
		if transport.OwnHeader(canonical) {
			faults.add(invalid(opDo, "header", fmt.Sprintf("%s is set by the client itself", canonical), "leave it out"))
			continue
		}
		if !check.IsHeaderName(name) {
			faults.add(invalid(opDo, "header", fmt.Sprintf("%s is not a header name", quote(name)), "want letters, digits and dashes"))
		}
		if slices.ContainsFunc(given[name], unsafeInHeader) {
			faults.add(invalid(opDo, "header", fmt.Sprintf("the value of %s has a line break or another control character", quote(canonical)), "take it out"))
		}
		header[canonical] = slices.Concat(header[canonical], given[name])
	}
	return header, faults.join()
}

func unsafeInHeader(value string) bool {
	return strings.IndexFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) >= 0
}

// encodeBody returns the JSON to send, or nil.
func (r Request) encodeBody() ([]byte, error) {
	var body []byte
	switch given := r.Body.(type) {
	case nil:
	case []byte:
		body = bytes.Clone(given)
	case json.RawMessage:
		body = bytes.Clone(given)
	case Raw:
		body = given.Bytes()
	default:
		encoded, err := rawjson.Encode(r.Body)
		if err != nil {
			return nil, invalid(opDo, "body", "can't be written as JSON", "give a value that JSON can hold")
		}
		if found := mask.FindMasked(encoded); found != "" {
			return nil, invalid(opDo, "body", fmt.Sprintf("holds %q, which a Secret or a Raw shows of itself", found), "give what it holds, with Secret.Reveal or Raw.Bytes", useReveal)
		}
		body = encoded
	}
	switch {
	case len(body) == 0:
		return nil, nil
	case r.Method == http.MethodGet:
		return nil, invalid(opDo, "body", "can't be sent with GET", "use Request.Query", useQuery)
	}
	return body, nil
}
