// Package headsredis records handled events in Redis, so that several receivers behind one URL
// handle each event only once:
//
//	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: addrs})
//	store, err := headsredis.New(client)
//	if err != nil {
//		return nil, err
//	}
//	return heads.NewEventHandler(keys, handle, heads.WithDeduplicator(store))
//
// # Configuration of Redis
//
// The store needs Redis 2.6 or later, with the commands GET, SET, DEL, EVAL and EVALSHA. Each event
// takes one key of about 200 bytes, which expires.
//
// If Redis loses a key, its event may be handled a second time. Redis can lose keys by eviction
// (set maxmemory-policy to noeviction), in a restart (set appendonly to yes, and appendfsync to
// always to lose none), and in a failover, since replication is asynchronous. No event is lost that
// way. If Redis does not answer, the handler answers 503, and the service redelivers the event.
package headsredis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"time"

	"github.com/headsapi/heads-go"
	"github.com/redis/go-redis/v9"
)

const defaultPrefix = "heads:events:"

// Deduplicator is a heads.Deduplicator in Redis. New returns one.
//
// Methods return soon after their context ends, regardless of the client's timeouts. The client may
// retry commands.
type Deduplicator struct {
	client redis.UniversalClient
	prefix string
}

// Option configures a Deduplicator.
type Option func(*Deduplicator) error

// WithPrefix sets the prefix of all keys in Redis. The default is "heads:events:". Receivers behind
// one URL must use the same prefix. Programs that handle the same events for different purposes
// must use different ones. For an empty prefix, New returns an InvalidError.
func WithPrefix(prefix string) Option {
	return func(d *Deduplicator) error {
		if prefix == "" {
			return invalid("prefix", "is empty", "leave WithPrefix out for the default")
		}
		d.prefix = prefix
		return nil
	}
}

// New returns a deduplicator that stores its keys through client, which may connect to a single
// server, a cluster or a failover group. It makes no network call and never closes the client. For
// a nil client or option, New returns an InvalidError.
func New(client redis.UniversalClient, opts ...Option) (*Deduplicator, error) {
	if client == nil {
		return nil, invalid("client", "is nil", "give one of package redis, such as redis.NewClient")
	}
	d := &Deduplicator{client: client, prefix: defaultPrefix}
	for _, opt := range opts {
		if opt == nil {
			return nil, invalid("option", "is nil", "leave it out")
		}
		if err := opt(d); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func invalid(field, problem, remedy string) error {
	return &heads.InvalidError{Operation: "headsredis.New", Field: field, Problem: problem, Remedy: remedy}
}

// The value of a key is "held" with the owner, or "done".
const (
	held = "held:"
	done = "done"
)

// claimScript claims KEYS[1] with ARGV[1], a held value, for ARGV[2] milliseconds.
var claimScript = redis.NewScript(`
local value = redis.call('GET', KEYS[1])
if not value or value == ARGV[1] then
	redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
	return 'new'
end
if value == '` + done + `' then
	return 'done'
end
return 'busy'
`)

// releaseScript deletes KEYS[1] if its value is ARGV[1].
var releaseScript = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then
	return redis.call('DEL', KEYS[1])
end
return 0
`)

// Claim implements heads.Deduplicator.
func (d *Deduplicator) Claim(ctx context.Context, key, owner string, lease time.Duration) (heads.Claim, error) {
	answer, err := do(ctx, "claim", func() (string, error) {
		return claimScript.Run(ctx, d.client, d.keys(key), held+owner, milliseconds(lease)).Text()
	})
	switch {
	case err != nil:
		return 0, err
	case answer == "new":
		return heads.ClaimNew, nil
	case answer == "busy":
		return heads.ClaimBusy, nil
	case answer == "done":
		return heads.ClaimDone, nil
	}
	return 0, fmt.Errorf("headsredis: claim: Redis returned %.20q, want new, busy or done", answer)
}

// Done implements heads.Deduplicator.
func (d *Deduplicator) Done(ctx context.Context, key, _ string, memory time.Duration) error {
	_, err := do(ctx, "done", func() (string, error) {
		return d.client.Do(ctx, "SET", d.keys(key)[0], done, "PX", milliseconds(memory)).Text()
	})
	return err
}

// Release implements heads.Deduplicator.
func (d *Deduplicator) Release(ctx context.Context, key, owner string) error {
	_, err := do(ctx, "release", func() (int, error) {
		return releaseScript.Run(ctx, d.client, d.keys(key), held+owner).Int()
	})
	return err
}

// keys returns the key in Redis for the key of an event, as the KEYS of a script. It is a hash, so
// it is short and has no special characters.
func (d *Deduplicator) keys(key string) []string {
	sum := sha256.Sum256([]byte(key))
	return []string{d.prefix + hex.EncodeToString(sum[:])}
}

// milliseconds rounds up: a lease must not end early, and Redis refuses 0.
func milliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond || ms < 1 {
		return max(ms, 0) + 1
	}
	return ms
}

// do runs f and returns early if ctx ends. A client of go-redis ignores ctx while it waits for a
// reply; with ContextTimeoutEnabled, it observes the deadline only.
func do[T any](ctx context.Context, operation string, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	results := make(chan result, 1)
	go func() {
		r := result{err: fmt.Errorf("headsredis: %s: the goroutine of the call was ended", operation)}
		defer func() {
			if v := recover(); v != nil { // a hook's panic would end the program
				r.err = fmt.Errorf("headsredis: %s: panic: %v", operation, v)
			}
			results <- r
		}()
		if r.value, r.err = f(); r.err != nil {
			r.err = fmt.Errorf("headsredis: %s: %w", operation, r.err)
		}
	}()
	select {
	case r := <-results:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("headsredis: %s: %w", operation, ctx.Err())
	}
}

// String returns the name of the type and the prefix, but not the client, which may hold a
// password.
func (d Deduplicator) String() string { return fmt.Sprintf("headsredis.Deduplicator(%q)", d.prefix) }

// Format writes the same as String, whatever the verb.
func (d Deduplicator) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, d.String()) }

// LogValue returns the same as String.
func (d Deduplicator) LogValue() slog.Value { return slog.StringValue(d.String()) }
