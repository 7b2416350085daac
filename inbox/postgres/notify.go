package postgres

import (
	"context"
	"time"
)

const (
	notifyInterval = 2 * time.Millisecond
	notifyTimeout  = silence // on the connection for renewals and the probe
	listenPause    = time.Second
)

// Listen implements engine.Backend.
func (b *backend) Listen(ctx context.Context, wake func()) {
	if b.pooled {
		<-ctx.Done()
		return
	}
	for ctx.Err() == nil {
		listening, cancel := context.WithCancel(ctx)
		b.mu.Lock()
		b.hangUp = cancel
		b.mu.Unlock()
		b.listen(listening, wake)
		cancel()
		select {
		case <-ctx.Done():
		case <-time.After(listenPause):
		}
	}
}

func (b *backend) listen(ctx context.Context, wake func()) {
	conn, err := b.connect(ctx)
	if err != nil {
		return
	}
	defer disconnect(conn)
	if _, err := conn.Exec(ctx, "LISTEN "+b.channel); err != nil {
		return
	}
	for wake(); ; wake() {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return
		}
	}
}

// Notify implements engine.Backend.
func (b *backend) Notify() {
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// notifyOthers sends notifications outside the transactions of appends, since NOTIFY takes a lock
// that would make their commits wait for each other.
func (b *backend) notifyOthers() {
	for {
		select {
		case <-b.signal:
		case <-b.ctx.Done():
			return
		}
		b.notify()
		select {
		case <-time.After(notifyInterval):
		case <-b.ctx.Done():
			return
		}
	}
}

func (b *backend) notify() {
	ctx, cancel := context.WithTimeout(b.ctx, notifyTimeout)
	defer cancel()
	conn, err := b.renewals.Acquire(ctx)
	if err != nil {
		return
	}
	defer conn.Release()
	begun := time.Now()
	_, err = conn.Exec(ctx, "SELECT pg_notify($1::text, '')", b.channel)
	_ = b.outcome(ctx, begun, err)
}
