//go:build unix

package headsredis

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"testing"
	"time"

	"github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest/deduptest"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var _ heads.Deduplicator = (*Deduplicator)(nil)

func newStore(t testing.TB, client redis.UniversalClient, opts ...Option) *Deduplicator {
	t.Helper()
	d, err := New(client, opts...)
	require.NoError(t, err)
	return d
}

func mustClaim(t testing.TB, d *Deduplicator, key, owner string) heads.Claim {
	t.Helper()
	claim, err := d.Claim(t.Context(), key, owner, time.Minute)
	require.NoError(t, err)
	return claim
}

// callsOf returns each call of the store for an event.
func callsOf(store *Deduplicator, key, owner string) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"claim":   func(ctx context.Context) error { _, err := store.Claim(ctx, key, owner, time.Minute); return err },
		"done":    func(ctx context.Context) error { return store.Done(ctx, key, owner, time.Minute) },
		"release": func(ctx context.Context) error { return store.Release(ctx, key, owner) },
	}
}

func TestDeduplicatorInRedis(t *testing.T) {
	assert.NoError(t, deduptest.Test(t.Context(), newStore(t, startRedis(t).client())))
}

func TestReceiversShareTheKeysOfTheirPrefix(t *testing.T) {
	server := startRedis(t)
	client := server.client()
	one, two, same := newStore(t, client), newStore(t, client, WithPrefix("{other}:")), newStore(t, server.client())
	assert.Equal(t, heads.ClaimNew, mustClaim(t, one, "key", "one"))
	assert.Equal(t, heads.ClaimNew, mustClaim(t, two, "key", "two"))
	assert.Equal(t, heads.ClaimBusy, mustClaim(t, same, "key", "three"))
	names, err := client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	const sum = "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683" // printf key | sha256sum
	assert.ElementsMatch(t, []string{"heads:events:" + sum, "{other}:" + sum}, names)
}

func TestKeysExpireByThemselves(t *testing.T) {
	client := startRedis(t).client()
	store := newStore(t, client)
	mustClaim(t, store, "held", "one")
	require.NoError(t, store.Done(t.Context(), "settled", "one", time.Hour))
	for key, limit := range map[string]time.Duration{"held": time.Minute, "settled": time.Hour} {
		left, err := client.PTTL(t.Context(), store.keys(key)[0]).Result()
		require.NoError(t, err)
		assert.Greater(t, left, limit-time.Minute, key)
		assert.LessOrEqual(t, left, limit, key)
	}
}

func TestLeaseIsRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		-time.Second: 1, 0: 1, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Second: 1000, math.MaxInt64: math.MaxInt64/1_000_000 + 1,
	} {
		assert.Equal(t, want, milliseconds(d), d)
	}
}

// After a restart or SCRIPT FLUSH, the server does not have the scripts.
func TestForgottenScriptsAreSentAgain(t *testing.T) {
	client := startRedis(t).client()
	store := newStore(t, client)
	assert.Equal(t, heads.ClaimNew, mustClaim(t, store, "key", "one"))
	require.NoError(t, client.ScriptFlush(t.Context()).Err())
	require.NoError(t, store.Release(t.Context(), "key", "one"))
	require.NoError(t, client.ScriptFlush(t.Context()).Err())
	assert.Equal(t, heads.ClaimNew, mustClaim(t, store, "key", "two"))
}

func TestClaimsOutliveARestart(t *testing.T) {
	server := startRedis(t)
	store := newStore(t, server.client())
	mustClaim(t, store, "held", "one")
	require.NoError(t, store.Done(t.Context(), "settled", "one", time.Hour))
	server.kill()
	_, err := store.Claim(t.Context(), "held", "two", time.Minute)
	assert.Error(t, err)
	server.start()
	assert.Equal(t, heads.ClaimBusy, mustClaim(t, store, "held", "two"))
	assert.Equal(t, heads.ClaimNew, mustClaim(t, store, "held", "one"))
	assert.Equal(t, heads.ClaimDone, mustClaim(t, store, "settled", "two"))
}

func TestCallsEndWithTheirContextThoughRedisHangs(t *testing.T) {
	server := startRedis(t)
	store := newStore(t, server.client())
	mustClaim(t, store, "key", "one")
	resume := server.hang()
	for name, call := range callsOf(store, "other", "two") {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		begun := time.Now()
		assert.ErrorIs(t, call(ctx), context.DeadlineExceeded, name)
		assert.Less(t, time.Since(begun), 2*time.Second, name) // the client waits 3 s and retries
		cancel()
	}
	resume()
	assert.Equal(t, heads.ClaimBusy, mustClaim(t, store, "key", "two"))
}

// hook is a hook of the user's client.
type hook struct{ process redis.ProcessHook }

func (h hook) DialHook(next redis.DialHook) redis.DialHook     { return next }
func (h hook) ProcessHook(redis.ProcessHook) redis.ProcessHook { return h.process }
func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func hooked(t testing.TB, process redis.ProcessHook) *redis.Client {
	client := unreachable()
	t.Cleanup(func() { _ = client.Close() })
	client.AddHook(hook{process: process})
	return client
}

func TestPanicInTheClientIsAnError(t *testing.T) {
	store := newStore(t, hooked(t, func(context.Context, redis.Cmder) error { panic("broken hook") }))
	for name, call := range callsOf(store, "key", "one") {
		assert.EqualError(t, call(t.Context()), "headsredis: "+name+": panic: broken hook")
	}
}

func TestUnexpectedAnswerIsAnError(t *testing.T) {
	store := newStore(t, hooked(t, func(_ context.Context, cmd redis.Cmder) error {
		cmd.(*redis.Cmd).SetVal("something else")
		return nil
	}))
	claim, err := store.Claim(t.Context(), "key", "one", time.Minute)
	assert.ErrorContains(t, err, `"something else"`)
	assert.Zero(t, claim)
}

// unreachable returns a client that finds no server and fails at once.
func unreachable() *redis.Client {
	return redis.NewClient(&redis.Options{Network: "unix", Addr: "/nowhere", MaxRetries: -1, DialerRetries: 1})
}

func TestErrorsNameTheCallAndKeepTheCause(t *testing.T) {
	for name, call := range callsOf(newStore(t, unreachable()), "key", "one") {
		err := call(t.Context())
		assert.ErrorContains(t, err, "headsredis: "+name+": ")
		assert.ErrorAs(t, err, new(*net.OpError))
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	client := unreachable()
	for field, row := range map[string]struct {
		client redis.UniversalClient
		opt    Option
	}{
		"client": {nil, WithPrefix("x")}, "option": {client, nil}, "prefix": {client, WithPrefix("")},
	} {
		_, err := New(row.client, row.opt)
		var invalid *heads.InvalidError
		require.ErrorAs(t, err, &invalid)
		assert.Equal(t, []string{"headsredis.New", field}, []string{invalid.Operation, invalid.Field})
	}
}

func TestPasswordIsNeverPrinted(t *testing.T) {
	const password = "canary-password"
	store := newStore(t, redis.NewClient(&redis.Options{Network: "unix", Addr: startRedis(t).socket, Username: "nobody", Password: password}))
	_, err := store.Claim(t.Context(), "key", "one", time.Minute)
	require.Error(t, err, "the server has no such user")
	var text bytes.Buffer
	for _, v := range []any{store, *store, err, []any{store}, struct{ D heads.Deduplicator }{store}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&text, verb, v)
		}
		slog.New(slog.NewTextHandler(&text, nil)).Info("m", "v", v)
		slog.New(slog.NewJSONHandler(&text, nil)).Info("m", "v", v)
	}
	assert.NotContains(t, text.String(), password)
	assert.NotContains(t, text.String(), fmt.Sprintf("%x", password))
	assert.Equal(t, `headsredis.Deduplicator("heads:events:")`, fmt.Sprint(store))
}
