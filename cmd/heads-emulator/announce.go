package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/headsapi/heads-go/headstest"
)

// controlPrefix is where the console and the control API are.
const controlPrefix = "/_emulator/"

// maxAnnounced is how many heads are announced by their ids. The announcement of -json
// has all of them.
const maxAnnounced = 5

// announcement is what a client needs. Programs read the keys of -json, so the keys
// must not change.
type announcement struct {
	BaseURL      string `json:"baseURL"`
	ControlURL   string `json:"controlURL"`
	ConsoleURL   string `json:"consoleURL"` // for a browser
	Token        string `json:"token"`
	LoopbackHTTP bool   `json:"loopbackHTTP"` // webhook and tool URLs on loopback may use plain http
	Exposed      bool   `json:"exposed"`      // other machines can reach the address
	headstest.Added
}

func announce(stdout io.Writer, s *settings, e *headstest.Emulator, addr net.Addr, added headstest.Added) error {
	a := announcement{
		BaseURL: baseURL(addr), Token: e.BearerToken(), LoopbackHTTP: true, Exposed: !addr.(*net.TCPAddr).IP.IsLoopback(), Added: added,
	}
	a.ControlURL = a.BaseURL + controlPrefix
	a.ConsoleURL = a.ControlURL
	text := a.lines()
	if s.json {
		line, err := json.Marshal(a)
		if err != nil {
			return err
		}
		text = string(line) + "\n"
	}
	_, err := io.WriteString(stdout, text)
	return err
}

// baseURL returns a base URL that works on this machine.
func baseURL(addr net.Addr) string {
	tcp := *addr.(*net.TCPAddr)
	if tcp.IP.IsUnspecified() {
		tcp.IP = net.IPv4(127, 0, 0, 1)
	}
	return "http://" + tcp.String()
}

// lines returns the announcement as lines for a shell.
func (a announcement) lines() string {
	var b strings.Builder
	fmt.Fprintln(&b, "# Open the console:", a.ConsoleURL)
	fmt.Fprintln(&b, "# The emulator is listening. In another terminal:")
	fmt.Fprintln(&b, "export HEADS_BASE_URL="+shellQuote(a.BaseURL))
	fmt.Fprintln(&b, "export HEADS_TOKEN="+shellQuote(a.Token))
	for i, id := range a.Heads[:min(len(a.Heads), maxAnnounced)] {
		if i == 0 {
			fmt.Fprintln(&b, "export HEADS_HEAD_ID="+shellQuote(id))
		} else {
			fmt.Fprintln(&b, "# another head:", id)
		}
	}
	if more := len(a.Heads) - maxAnnounced; more > 0 {
		fmt.Fprintf(&b, "# and %d more, of %d heads in all\n", more, len(a.Heads))
	}
	fmt.Fprintln(&b, "# Its control API, for this machine only:", a.ControlURL)
	fmt.Fprintln(&b, "# Here, webhook and tool URLs on loopback may use plain http. The service accepts only HTTPS.")
	if a.Exposed {
		fmt.Fprintln(&b, "# Other machines can reach this address. Whoever has the token can make this machine send requests.")
	}
	fmt.Fprintln(&b, "# Ctrl-C stops it.")
	return b.String()
}

// shellQuote quotes any text as one word.
func shellQuote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
