// Package loopback recognizes hosts that can only be this machine.
package loopback

import (
	"net/netip"
	"strings"
)

// Is reports whether a host, without port and brackets, is localhost or a
// loopback IP address. Names below localhost are not loopback, since DNS
// may resolve them to any address.
func Is(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Zone() == "" && ip.Unmap().IsLoopback()
}
