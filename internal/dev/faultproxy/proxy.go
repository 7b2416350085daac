// Package faultproxy is a TCP proxy with faults: it delays, cuts and resets
// connections, and corrupts or delays single bytes. A seed determines which fault a
// connection has, and where. Toxiproxy's library can delay, cut, reset and drip, but
// can't corrupt bytes and has no seed.
package faultproxy

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Proxy forwards the connections that it accepts to a target.
type Proxy struct {
	listener net.Listener
	target   string
	rate     float64 // the share of connections with a fault

	mu   sync.Mutex
	rand *rand.Rand
	open int        // connections
	idle *sync.Cond // signals that open is 0

	loop sync.WaitGroup
}

// New starts a proxy on a loopback port.
func New(target string, seed uint64, rate float64) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, target: target, rate: rate, rand: rand.New(rand.NewPCG(seed, 1))}
	p.idle = sync.NewCond(&p.mu)
	p.loop.Go(p.accept)
	return p, nil
}

// Addr returns the address on which the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Wait returns when every connection accepted so far has ended. No connection
// may be made at the same time.
func (p *Proxy) Wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.open > 0 {
		p.idle.Wait()
	}
}

// count records that a connection was opened or has ended.
func (p *Proxy) count(change int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open += change; p.open == 0 {
		p.idle.Broadcast()
	}
}

// Close stops accepting connections and waits for the open ones.
func (p *Proxy) Close() {
	p.listener.Close()
	p.loop.Wait()
	p.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.count(+1)
		go func() {
			defer p.count(-1)
			p.serve(client.(*net.TCPConn))
		}()
	}
}

// fault is the kind of fault of a connection.
type fault int

const (
	none fault = iota
	delay
	cutRequest  // the connection ends after some bytes of the client's
	cutResponse // the connection ends after some bytes of the server's
	reset       // the same as cutResponse, with a reset
	corrupt     // a byte of the server's is changed
	drip        // bytes arrive in small pieces
	refuse      // it is reset before anything is read
	kinds
)

// plan is the fault of one connection.
type plan struct {
	fault fault
	at    int           // the byte at which it happens
	pause time.Duration // of a delay, or between pieces
}

func (p *Proxy) draw() plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rand.Float64() >= p.rate {
		return plan{}
	}
	return plan{
		fault: delay + fault(p.rand.IntN(int(kinds-delay))),
		at:    p.rand.IntN(4000), // a handshake and a small call
		pause: time.Duration(p.rand.IntN(20)) * time.Millisecond,
	}
}

func (p *Proxy) serve(client *net.TCPConn) {
	defer client.Close()
	plan := p.draw()
	if plan.fault == refuse {
		_ = client.SetLinger(0)
		return
	}
	dialed, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	server := dialed.(*net.TCPConn)
	defer server.Close()
	var both sync.WaitGroup
	end := func() {
		client.Close()
		server.Close()
	}
	both.Go(func() {
		plan.copy(server, client, cutRequest, end)
		_ = server.CloseWrite()
	})
	both.Go(func() {
		plan.copy(client, server, cutResponse, end)
		end() // the server has sent everything
	})
	both.Wait()
}

// copy forwards bytes until its side of the connection ends or its fault happens.
func (p plan) copy(dst, src *net.TCPConn, cut fault, end func()) {
	var reader io.Reader = src
	if p.fault == drip {
		reader = &dripping{src, p.pause / 10}
	}
	buf := make([]byte, 4096)
	for done := 0; ; {
		n, err := reader.Read(buf)
		piece := buf[:n]
		hit := p.at >= done && p.at < done+n
		done += n
		switch {
		case hit && p.fault == delay:
			pause(p.pause)
		case hit && p.fault == cut:
			end()
			return
		case hit && p.fault == reset && cut == cutResponse:
			_ = dst.SetLinger(0)
			end()
			return
		case hit && p.fault == corrupt && cut == cutResponse:
			piece[p.at-(done-n)] ^= 0x20
		}
		if n > 0 {
			if _, err := dst.Write(piece); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// dripping reads small pieces, with pauses.
type dripping struct {
	src   io.Reader
	pause time.Duration
}

func (d *dripping) Read(b []byte) (int, error) {
	pause(d.pause)
	return d.src.Read(b[:min(len(b), 97)])
}

func pause(d time.Duration) { <-time.After(d) }
