//go:build unix

package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
)

// BenchmarkGet reports how much longer the program takes than its request.
func BenchmarkGet(b *testing.B) {
	c := emulator(b, legacyHeads(1))
	client := need(heads.New(c.url, c.token))(b)
	need(client.Heads.Get(b.Context(), c.ids[0]))(b)
	var program, request time.Duration
	for b.Loop() {
		started := time.Now()
		need(client.Heads.Get(b.Context(), c.ids[0]))(b)
		request += time.Since(started)
		started = time.Now()
		c.ok("get", c.ids[0])
		program += time.Since(started)
	}
	b.ReportMetric(float64((program-request).Milliseconds())/float64(b.N), "ms-over-request")
}

// BenchmarkPlan5000 reports the memory of a plan of 5,000 heads.
func BenchmarkPlan5000(b *testing.B) {
	const n = 5000
	c := emulator(b, legacyHeads(n))
	file := "heads:\n"
	for _, id := range c.ids {
		file += "  - {id: " + id + ", set: {greetings: Welcome!}, streaming: true}\n"
	}
	c.write("heads.yaml", file, "ids.csv", strings.Join(c.ids, "\n"))
	for name, args := range map[string][]string{
		"heads.yaml": {"plan", "-f", "heads.yaml", "-j", "16", "--report", "r.html"}, "ids.csv": {"convert", "-f", "ids.csv", "--dry-run", "-j", "16", "--report", "r.json"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				cmd := c.command(b.Context(), args...)
				require.Contains(b, string(need(cmd.Output())(b)), fmt.Sprintf("%d pending", n))
				b.ReportMetric(float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)/1024, "MB")
			}
		})
	}
}
