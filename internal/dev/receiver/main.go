// Receiver is a minimal server of a customer. It answers every POST with
// {"message":"received"}, which is a valid answer to an event and to a tool call. It
// checks nothing.
//
//	go run ./internal/dev/receiver
//
// It listens on a free loopback port, or at -addr, and prints its URL as a line for a
// shell. If -dir names a folder, it writes the n-th request to the files n.body, byte
// for byte, and n.signature, with the value of the header x-signature-256.
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "`address` to listen on; port 0 chooses a free one")
	dir := flag.String("dir", "", "`folder` that keeps what is received; it must exist (default: none)")
	flag.Parse()
	if err := serve(*addr, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "receiver:", err)
		os.Exit(1)
	}
}

func serve(addr, dir string) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("export RECEIVER_URL=http://%s\n", listener.Addr())
	server := &http.Server{Handler: &receiver{dir: dir}, ReadTimeout: 10 * time.Second}
	return server.Serve(listener)
}

type receiver struct {
	dir string // "": nothing is kept
	mu  sync.Mutex
	n   int
}

func (rc *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err == nil {
		err = rc.keep(body, r.Header.Get("x-signature-256"))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"message":"received"}`) // an error means that the sender has left
}

func (rc *receiver) keep(body []byte, signature string) error {
	if rc.dir == "" {
		return nil
	}
	rc.mu.Lock()
	defer rc.mu.Unlock()
	rc.n++
	name := filepath.Join(rc.dir, strconv.Itoa(rc.n))
	if err := os.WriteFile(name+".body", body, 0o600); err != nil {
		return err
	}
	return os.WriteFile(name+".signature", []byte(signature), 0o600)
}
