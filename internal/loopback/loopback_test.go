package loopback

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOnlyLocalhostAndLoopbackAddressesAreLoopback(t *testing.T) {
	for _, host := range []string{
		"localhost", "LOCALHOST", "Localhost", "127.0.0.1", "127.0.0.2", "127.255.255.254", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1",
	} {
		assert.True(t, Is(host), "%q", host)
	}
	for _, host := range []string{
		"", ".", " localhost", "localhost.", "x.localhost", "api.localhost", ".localhost", "localhost.example.com", "127.0.0.1.example.com",
		"0.0.0.0", "::", "::2", "10.0.0.1", "192.168.0.1", "169.254.0.1", "128.0.0.1", "::ffff:10.0.0.1", "fe80::1",
		"::1%lo", "[::1]", "127.1", "0177.0.0.1", "0x7f.0.0.1", "2130706433", "127.0.0.1:80", "localhost:80", "loopback", "ip6-localhost",
	} {
		assert.False(t, Is(host), "%q", host)
	}
}
