package scenario

import (
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
)

// Ports for back ends lie below those that the system takes for outgoing connections.
// Otherwise an attempt to reach a back end that was killed could connect to itself,
// and keep the back end from its own port.
const (
	firstPort        = 10000
	defaultOutgoing  = 32768
	maxPortAttempts  = 5000
	outgoingSettings = "/proc/sys/net/ipv4/ip_local_port_range"
)

// port is a port for one back end at a time, on this machine.
type port struct {
	number int
	lock   net.PacketConn
}

// reservePort returns a free port with an even number. While it is reserved, a UDP
// socket has the odd number above it, so that no other run takes it between two starts
// of the back end; the system frees that socket with the process.
func reservePort() (*port, error) {
	limit := firstOutgoing()
	if limit <= firstPort+2 {
		return nil, errors.New("the system takes all ports for outgoing connections; let it begin at 32768 (net.ipv4.ip_local_port_range)")
	}
	for range maxPortAttempts {
		number := firstPort + 2*rand.IntN((limit-firstPort)/2)
		lock, err := net.ListenPacket("udp", loopbackAddress(number+1))
		if err != nil {
			continue
		}
		if isFree(number) {
			return &port{number, lock}, nil
		}
		_ = lock.Close()
	}
	return nil, errors.New("there is no free port for the back end; end programs that listen on many")
}

func (p *port) release() { _ = p.lock.Close() }

func loopbackAddress(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// isFree reports whether nothing listens on a port, on loopback or on all addresses.
func isFree(number int) bool {
	for _, address := range []string{loopbackAddress(number), ":" + strconv.Itoa(number)} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}

// firstOutgoing returns the first port that the system takes for outgoing connections.
func firstOutgoing() int {
	text, err := os.ReadFile(outgoingSettings)
	if err != nil {
		return defaultOutgoing
	}
	fields := strings.Fields(string(text))
	if len(fields) == 0 {
		return defaultOutgoing
	}
	first, err := strconv.Atoi(fields[0])
	if err != nil {
		return defaultOutgoing
	}
	return min(first, defaultOutgoing)
}
