// Package registration compares registrations of webhooks.
package registration

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// SortByAge sorts the oldest first. It compares ids if two times are the same, and
// everywhere if one of the times is not known.
func SortByAge[T any](list []T, age func(T) (created time.Time, id int64)) {
	undated := slices.ContainsFunc(list, func(one T) bool {
		created, _ := age(one)
		return created.IsZero()
	})
	slices.SortFunc(list, func(a, b T) int {
		createdA, idA := age(a)
		createdB, idB := age(b)
		if undated {
			return cmp.Compare(idA, idB)
		}
		return cmp.Or(createdA.Compare(createdB), cmp.Compare(idA, idB))
	})
}

// URLKey returns the same text for equivalent URLs: it ignores the case of the host,
// a default port and a slash at the end. A registration can't have a URL with a user
// name, so such a URL is equivalent to no other.
func URLKey(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.User != nil {
		return raw
	}
	port := u.Port()
	switch {
	case port == "" && u.Scheme == "https":
		port = "443"
	case port == "" && u.Scheme == "http":
		port = "80"
	}
	text := u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port) + strings.TrimSuffix(u.EscapedPath(), "/")
	if u.RawQuery != "" {
		text += "?" + u.RawQuery
	}
	return text
}
