package heads

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/headsapi/heads-go/internal/check"
)

// AccessURL is an access URL in its parts: {base}/{public org id}/{public head
// id}?api_key={key}. People and integrations reach a head there. Nothing shows its
// key, and JSON neither the key nor further query parameters; Reveal returns the
// whole URL.
type AccessURL struct {
	Base         string // "https://chat.example.com", without a slash at the end
	PublicOrgID  string // "MyOrg-1234"
	PublicHeadID string // "li-28379"
	APIKey       Secret

	others Secret // further query parameters, encoded
}

// ParseAccessURL parses an access URL. It accepts the legacy form and the
// streaming form on any host. It returns an InvalidError if a part is missing or a
// placeholder such as YOUR_ORG; the error does not show the key.
func ParseAccessURL(raw string) (AccessURL, error) {
	return parseAccessURL("ParseAccessURL", "access URL", raw)
}

func parseAccessURL(operation, field, raw string) (AccessURL, error) {
	u, found := check.URL(raw, check.Access)
	if len(found) > 0 {
		return AccessURL{}, faultsOf(operation, field, found).join()
	}
	segments := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(segments) < 2 || segments[len(segments)-2] == "" {
		return AccessURL{}, invalid(operation, field, fmt.Sprintf("on host %s lacks a public id", u.Host), "want /{public_org_id}/{public_head_id}")
	}
	query := u.Query()
	key := query.Get("api_key")
	if key == "" {
		return AccessURL{}, invalid(operation, field, fmt.Sprintf("on host %s lacks the query parameter api_key", u.Host), "give the whole URL")
	}
	for _, id := range segments[len(segments)-2:] {
		if check.IsSample(id) {
			return AccessURL{}, invalid(operation, field, fmt.Sprintf("on host %s holds the placeholder %s", u.Host, quote(id)), "give the real URL")
		}
	}
	if found := check.SampleInURL(&url.URL{Host: u.Host, Path: u.Path}); found != "" {
		return AccessURL{}, invalid(operation, field, "holds the placeholder "+quote(found), "give the real URL")
	}
	if check.IsSample(key) {
		return AccessURL{}, invalid(operation, field, fmt.Sprintf("on host %s holds a placeholder for its api_key", u.Host), "give the real key")
	}
	query.Del("api_key")
	base := url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimRight(strings.Join(segments[:len(segments)-2], "/"), "/")}
	return AccessURL{
		Base:         base.String(),
		PublicOrgID:  segments[len(segments)-2],
		PublicHeadID: segments[len(segments)-1],
		APIKey:       NewSecret(key),
		others:       NewSecret(query.Encode()),
	}, nil
}

// WithBase returns the access URL of the same head at another base. It returns
// an InvalidError if base is not an absolute URL, has a query, or is plain http
// to a host that is not loopback.
func (a AccessURL) WithBase(base string) (AccessURL, error) {
	u, err := checkBaseURL("AccessURL.WithBase", "base", base, false)
	if err != nil {
		return AccessURL{}, err
	}
	a.Base = u.String()
	return a, nil
}

// Reveal returns the whole URL, key included.
func (a AccessURL) Reveal() string {
	return a.address() + "?" + a.query(url.QueryEscape(a.APIKey.Reveal()))
}

// String returns the URL with [redacted] for the key, or "" for the zero value.
func (a AccessURL) String() string {
	if a == (AccessURL{}) {
		return ""
	}
	return a.address() + "?api_key=" + redacted
}

// accessURL returns the access URL at which a head is reached now.
func (c *core) accessURL(h *Head) (AccessURL, error) {
	address, err := currentAddress("AccessURL", h)
	if err != nil {
		return AccessURL{}, err
	}
	address.Base = c.accessBase(h.VideoStreaming, address.Base)
	return address, nil
}

// currentAddress returns the access URL of a head as the service sends it.
func currentAddress(operation string, h *Head) (AccessURL, error) {
	return parseAccessURL(operation, "publicUrl of head "+quote(h.ID), h.PublicURL.Reveal())
}

// accessBase returns the configured base for a mode, or else the given one.
func (c *core) accessBase(streaming bool, otherwise string) string {
	base := c.chatBase
	if streaming {
		base = c.streamBase
	}
	if base == "" {
		return otherwise
	}
	return base
}

func (a AccessURL) address() string {
	return a.Base + "/" + url.PathEscape(a.PublicOrgID) + "/" + url.PathEscape(a.PublicHeadID)
}

func (a AccessURL) query(key string) string {
	if a.others.IsZero() {
		return "api_key=" + key
	}
	return "api_key=" + key + "&" + a.others.Reveal()
}
