package console

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Progress is a bar on stderr, or nothing if stderr is no terminal.
type Progress struct {
	pool     *mpb.Progress
	bar      *mpb.Bar
	failures atomic.Int64

	restore []func()
}

// NewProgress shows a bar for a number of heads until Stop.
func NewProgress(stdout, stderr *Output, verb string, total int) *Progress {
	p := &Progress{}
	if !stderr.Terminal || total == 0 {
		return p
	}
	started := time.Now()
	p.pool = mpb.New(mpb.WithOutput(stderr.file), mpb.WithWidth(64), mpb.WithRefreshRate(100*time.Millisecond))
	p.bar = p.pool.New(int64(total), mpb.BarStyle().Lbound("[").Filler("=").Tip(">").Padding("-").Rbound("]"),
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(verb+" "), decor.CountersNoUnit("%d/%d ")),
		mpb.AppendDecorators(
			decor.Any(func(decor.Statistics) string { return fmt.Sprintf(" %d failed, ", p.failures.Load()) }),
			decor.Any(func(s decor.Statistics) string {
				return fmt.Sprintf("%.1f/s, ", float64(s.Current)/max(time.Since(started).Seconds(), 0.001))
			}),
			decor.AverageETA(decor.ET_STYLE_GO), decor.Name(" left"),
		),
	)
	p.share(stdout, stderr)
	return p
}

// share lets lines pass above the bar: those of stderr, and those of stdout if
// that is the same terminal.
func (p *Progress) share(stdout, stderr *Output) {
	p.restore = append(p.restore, stderr.redirect(p.pool))
	if stdout.Terminal && sameFile(stdout.file, stderr.file) {
		p.restore = append(p.restore, stdout.redirect(p.pool))
	}
}

func sameFile(a, b *os.File) bool {
	first, err := a.Stat()
	if err != nil {
		return false
	}
	second, err := b.Stat()
	return err == nil && os.SameFile(first, second)
}

// Done counts a head that has ended.
func (p *Progress) Done(failed bool) {
	if failed {
		p.failures.Add(1)
	}
	if p.bar != nil {
		p.bar.Increment()
	}
}

// Stop takes the bar away.
func (p *Progress) Stop() {
	if p.pool == nil {
		return
	}
	p.bar.Abort(true)
	p.pool.Wait()
	for _, restore := range p.restore {
		restore()
	}
}
