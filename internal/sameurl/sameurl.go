// Package sameurl compares the URLs of webhooks.
package sameurl

import (
	"net"
	"net/url"
	"strings"
)

// Key returns the same text for URLs that mean the same place: case of the
// host, a default port and a slash at the end are ignored. One with a user name
// means no place that a registration may have.
func Key(raw string) string {
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
