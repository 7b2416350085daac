// Package deduptest tests implementations of heads.Deduplicator. Only authors of a store
// need it.
package deduptest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/headsapi/heads-go"
)

// Test tests an implementation of heads.Deduplicator: that claims
// are atomic, belong to their owner and end with their lease, that settled keys
// stay settled, and that keys don't affect each other. It returns nil or one
// error that reports all faults it found.
//
// It uses the real clock, with leases of half a second, and takes about 2 seconds.
// A lease or a memory may end up to a second late, but never early. Every run
// uses new keys that begin with random text, so d may be a store in use. It must
// have room for 1,000 keys, which Test does not remove. Keys are valid
// UTF-8 without NUL, of up to 1,000 bytes.
//
// Typical use inside a test is:
//
//	if err := deduptest.Test(t.Context(), store); err != nil {
//		t.Fatal(err)
//	}
func Test(ctx context.Context, d heads.Deduplicator) error {
	if d == nil {
		return errors.New("deduptest: the deduplicator is nil")
	}
	run := rand.Text()
	faults := make([]error, len(rules))
	var wg sync.WaitGroup
	for i, rule := range rules {
		wg.Go(func() {
			c := &check{ctx: ctx, d: d, rule: rule.name, key: run + "-" + strconv.Itoa(i)}
			rule.check(c)
			faults[i] = errors.Join(c.faults...)
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("deduptest: the test did not finish: %w", err)
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("deduptest: found errors:\n%w", err)
	}
	return nil
}

const (
	shortLease = 500 * time.Millisecond
	longLease  = time.Minute
	lateEnd    = time.Second                       // how late a lease may end
	surelyOver = shortLease + lateEnd              // when a short lease has ended
	whileHeld  = surelyOver + 100*time.Millisecond // when a short lease that was not extended has surely ended
	pollEvery  = 20 * time.Millisecond

	callTimeout = 5 * time.Second // the service waits this long for an answer
	callGrace   = time.Second     // for a call to return after its context ends

	contestRounds = 50
	contestants   = 8
)

// The owners of most checks. owner holds the key; other and third claim it.
const owner, other, third = "OWNER", "OTHER", "THIRD"

var rules = []struct {
	name  string
	check func(*check)
}{
	{"a claimed key is busy for others", (*check).busyForOthers},
	{"a refused claim changes nothing", (*check).refusedClaimChangesNothing},
	{"a released key is free", (*check).releasedIsFree},
	{"only the owner releases", (*check).onlyTheOwnerReleases},
	{"releasing what is not held is no error", (*check).releaseOfNothing},
	{"a lease ends", (*check).leaseEnds},
	{"an old owner has no claim", (*check).oldOwnerHasNoClaim},
	{"the owner takes its key again after its lease", (*check).takenAgain},
	{"the owner extends its lease", (*check).ownerExtends},
	{"an extended lease ends", (*check).extendedLeaseEnds},
	{"a settled key is done for all", (*check).settledForAll},
	{"a settled key can't be released", (*check).settledStaysSettled},
	{"Done settles what another owner holds", (*check).doneByAnother},
	{"Done settles what nobody holds", (*check).doneByNobody},
	{"Done settles after the lease", (*check).doneAfterTheLease},
	{"a settled key outlives its lease", (*check).memoryIsNotTheLease},
	{"Done again extends the memory", (*check).doneAgain},
	{"a memory ends", (*check).memoryEnds},
	{"long durations", (*check).longDurations},
	{"keys are independent", (*check).keysAreIndependent},
	{"owners are compared exactly", (*check).ownersAreExact},
	{"one of many claims wins", (*check).oneWins},
	{"one of many claims wins a released key", (*check).oneWinsWhatWasReleased},
	{"one of many claims wins a key whose lease ended", (*check).oneWinsWhatLapsed},
	{"Done wins against claims at the same time", (*check).doneWins},
	{"a release frees nothing but its own claim", (*check).releaseIsAtomic},
	{"an ended context", (*check).endedContext},
}

func (c *check) busyForOthers() {
	c.claim(c.key, owner, longLease, heads.ClaimNew, "of a free key")
	c.claim(c.key, other, longLease, heads.ClaimBusy, "of a key that another owner holds")
	c.claim(c.key, third, longLease, heads.ClaimBusy, "of a key that another owner holds")
}

func (c *check) refusedClaimChangesNothing() {
	c.claim(c.key, owner, longLease, heads.ClaimNew, "of a free key")
	c.claim(c.key, other, longLease, heads.ClaimBusy, "of a key that another owner holds")
	c.release(c.key, other)
	c.claim(c.key, third, longLease, heads.ClaimBusy, "after another owner's claim was refused and released")
	c.claim(c.key, owner, longLease, heads.ClaimNew, "by the owner, after another owner's claim was refused")
}

func (c *check) releasedIsFree() {
	c.claim(c.key, owner, longLease, heads.ClaimNew, "of a free key")
	c.claim(c.key, owner, longLease, heads.ClaimNew, "of a key by its owner")
	c.release(c.key, owner)
	c.claim(c.key, other, longLease, heads.ClaimNew, "of a key that was released once, and claimed by its owner twice")
	c.claim(c.key, owner, longLease, heads.ClaimBusy, "of a key that was released and claimed by another owner")
}

func (c *check) onlyTheOwnerReleases() {
	c.claim(c.key, owner, longLease, heads.ClaimNew, "of a free key")
	c.release(c.key, other)
	c.claim(c.key, third, longLease, heads.ClaimBusy, "of a key that someone other than its owner released")
}

func (c *check) releaseOfNothing() {
	c.release(c.key, owner)
	c.claim(c.key, other, longLease, heads.ClaimNew, "of a key that was released before any claim")
	c.release(c.key, other)
	c.release(c.key, other)
	c.claim(c.key, third, longLease, heads.ClaimNew, "of a key that was released twice")
}

func (c *check) leaseEnds() {
	lease := c.begin(func() { c.claim(c.key, owner, shortLease, heads.ClaimNew, "of a free key") })
	c.ends(lease, heads.ClaimBusy)
}

func (c *check) oldOwnerHasNoClaim() {
	lease := c.begin(func() { c.claim(c.key, owner, shortLease, heads.ClaimNew, "of a free key") })
	c.ends(lease, heads.ClaimBusy)
	c.release(c.key, owner)
	c.claim(c.key, third, longLease, heads.ClaimBusy, "of a key that its owner before the present one released")
	c.claim(c.key, owner, longLease, heads.ClaimBusy, "by the owner before the present one")
}

func (c *check) takenAgain() {
	c.claim(c.key, owner, shortLease, heads.ClaimNew, "of a free key")
	c.wait(surelyOver)
	c.claim(c.key, owner, longLease, heads.ClaimNew, "by an owner whose lease has ended")
	c.claim(c.key, other, longLease, heads.ClaimBusy, "of a key that its owner took again")
}

func (c *check) ownerExtends() {
	c.claim(c.key, owner, shortLease, heads.ClaimNew, "of a free key")
	c.claim(c.key, owner, longLease, heads.ClaimNew, "of a key by its owner")
	c.wait(whileHeld)
	c.claim(c.key, other, longLease, heads.ClaimBusy, "of a key whose owner extended the lease")
}

func (c *check) extendedLeaseEnds() {
	c.claim(c.key, owner, shortLease/2, heads.ClaimNew, "of a free key")
	lease := c.begin(func() { c.claim(c.key, owner, shortLease, heads.ClaimNew, "of a key by its owner") })
	c.ends(lease, heads.ClaimBusy)
}

func (c *check) settledForAll() {
	c.claim(c.key, owner, longLease, heads.ClaimNew, "of a free key")
	c.done(c.key, owner, longLease)
	c.claim(c.key, other, longLease, heads.ClaimDone, "of a settled key")
	c.claim(c.key, owner, longLease, heads.ClaimDone, "of a settled key by the owner that settled it")
	c.claim(c.key, third, longLease, heads.ClaimDone, "of a settled key, the third time")
}

func (c *check) settledStaysSettled() {
	c.claim(c.key, owner, longLease, heads.ClaimNew, "of a free key")
	c.done(c.key, owner, longLease)
	c.release(c.key, owner)
	c.claim(c.key, other, longLease, heads.ClaimDone, "of a settled key that the owner released")
	c.release(c.key, other)
	c.claim(c.key, third, longLease, heads.ClaimDone, "of a settled key that another owner released")
}

func (c *check) doneByAnother() {
	c.claim(c.key, owner, longLease, heads.ClaimNew, "of a free key")
	c.done(c.key, other, longLease)
	c.claim(c.key, third, longLease, heads.ClaimDone, "of a key that one owner held and another one settled")
	c.release(c.key, owner)
	c.claim(c.key, owner, longLease, heads.ClaimDone, "by the owner of a key that another one settled")
}

func (c *check) doneByNobody() {
	c.done(c.key, owner, longLease)
	c.claim(c.key, other, longLease, heads.ClaimDone, "of a key that was settled without a claim")
}

func (c *check) doneAfterTheLease() {
	c.claim(c.key, owner, shortLease, heads.ClaimNew, "of a free key")
	c.wait(surelyOver)
	c.done(c.key, owner, longLease)
	c.claim(c.key, other, longLease, heads.ClaimDone, "of a key that was settled after the lease had ended")
}

func (c *check) memoryIsNotTheLease() {
	c.claim(c.key, owner, shortLease, heads.ClaimNew, "of a free key")
	c.done(c.key, owner, longLease)
	c.claim(c.key, owner, shortLease, heads.ClaimDone, "of a settled key by the owner that settled it")
	c.wait(whileHeld)
	c.claim(c.key, other, longLease, heads.ClaimDone, "of a settled key after the lease")
}

func (c *check) doneAgain() {
	c.done(c.key, owner, shortLease)
	c.done(c.key, owner, longLease)
	c.wait(whileHeld)
	c.claim(c.key, other, longLease, heads.ClaimDone, "of a key that was settled again, for longer")
}

func (c *check) memoryEnds() {
	c.claim(c.key, owner, longLease, heads.ClaimNew, "of a free key")
	memory := c.begin(func() { c.done(c.key, owner, shortLease) })
	c.ends(memory, heads.ClaimDone)
}

func (c *check) longDurations() {
	for i, long := range []time.Duration{90 * 24 * time.Hour, math.MaxInt64} {
		held, settled := fmt.Sprint(c.key, "-held-", i), fmt.Sprint(c.key, "-settled-", i)
		c.claim(held, owner, long, heads.ClaimNew, fmt.Sprintf("with a lease of %v", long))
		c.claim(held, other, longLease, heads.ClaimBusy, fmt.Sprintf("of a key with a lease of %v", long))
		c.done(settled, owner, long)
		c.claim(settled, other, longLease, heads.ClaimDone, fmt.Sprintf("of a key that is settled for %v", long))
	}
}

// oddKeys returns keys that a store may confuse with each other.
func oddKeys(base string) []string {
	keys := []string{base, strings.ToLower(base), " " + base}
	for _, end := range []string{
		" ", "\t", "\n", "\r\n", ":", ":" + owner, "|", "/", "/../x", "\\", "'", "''", `"`, "`", ";--", "#", "?", "*",
		"%", "_", "%20", "+", ",", "{a}", "{b}", "[a]", "$1", "1", "01", "x", "X", "xx", "ss",
		"\u00e9", "e\u0301", "\u00df", "\u982d", "\U0001f5e3", "\u200b",
	} {
		keys = append(keys, base+end)
	}
	long := base + strings.Repeat("k", 999-len(base))
	return append(keys, long, long+"1", long+"2")
}

func (c *check) keysAreIndependent() {
	for half := range 2 {
		keys := oddKeys(fmt.Sprint(c.key, "-", half))
		for _, key := range keys {
			c.claim(key, owner, longLease, heads.ClaimNew, fmt.Sprintf("of the free key %.60q", key))
		}
		for i, key := range keys {
			if i%2 == half {
				c.release(key, owner)
			}
		}
		for i, key := range keys {
			if i%2 != half {
				c.claim(key, other, longLease, heads.ClaimBusy, fmt.Sprintf("of the key %.60q after others were released", key))
				c.done(key, owner, longLease)
			}
		}
		for i, key := range keys {
			if i%2 == half {
				c.claim(key, other, longLease, heads.ClaimNew, fmt.Sprintf("of the key %.60q, which was released, after others were settled", key))
			} else {
				c.claim(key, other, longLease, heads.ClaimDone, fmt.Sprintf("of the settled key %.60q", key))
			}
		}
	}
}

func (c *check) ownersAreExact() {
	long := strings.Repeat("o", 200)
	owners := []string{
		"a", "A", "a ", " a", "ab", "a*", "a%", "a:b", "0", "1", "true", "nil", "new", "busy", "done", "held", "released",
		c.key, long, long + "o",
	}
	for i, holder := range owners {
		key := fmt.Sprint(c.key, "-", i)
		c.claim(key, holder, longLease, heads.ClaimNew, "of a free key")
		for _, another := range owners {
			if another != holder {
				c.release(key, another)
			}
		}
		next := owners[(i+1)%len(owners)]
		c.claim(key, next, longLease, heads.ClaimBusy, fmt.Sprintf("by %.20q of a key that %.20q holds", next, holder))
		c.claim(key, holder, longLease, heads.ClaimNew, fmt.Sprintf("by its owner %.20q", holder))
		c.release(key, holder)
		c.claim(key, next, longLease, heads.ClaimNew, fmt.Sprintf("of a key that its owner %.20q released", holder))
	}
}

func (c *check) oneWins() {
	for i := range contestRounds {
		c.contest(fmt.Sprint(c.key, "-", i))
	}
}

func (c *check) oneWinsWhatWasReleased() {
	for i := range contestRounds {
		key := fmt.Sprint(c.key, "-", i)
		c.claim(key, owner, longLease, heads.ClaimNew, "of a free key")
		c.release(key, owner)
		c.contest(key)
	}
}

func (c *check) oneWinsWhatLapsed() {
	for i := range contestRounds {
		c.claim(fmt.Sprint(c.key, "-", i), owner, shortLease, heads.ClaimNew, "of a free key")
	}
	c.wait(surelyOver)
	for i := range contestRounds {
		c.contest(fmt.Sprint(c.key, "-", i))
	}
}

// contest lets several owners claim a free key at once.
func (c *check) contest(key string) {
	claims := make([]heads.Claim, contestants)
	calls := make([]func(*check), contestants)
	for i := range calls {
		calls[i] = func(c *check) { claims[i] = c.tryClaim(key, fmt.Sprint(owner, "-", i), longLease) }
	}
	c.together(calls...)
	winners := 0
	for _, claim := range claims {
		switch claim {
		case heads.ClaimNew:
			winners++
		case heads.ClaimBusy:
		default:
			c.fault("%d Claims of one free key at once: one returned %v, want new or busy", contestants, claim)
		}
	}
	if winners != 1 {
		c.fault("%d Claims of one free key at once: %d returned new, want 1: Claim is not atomic", contestants, winners)
	}
}

// If another call overwrites a Done, the event is handled twice.
func (c *check) doneWins() {
	for i := range contestRounds {
		free, held, released := fmt.Sprint(c.key, "-free-", i), fmt.Sprint(c.key, "-held-", i), fmt.Sprint(c.key, "-released-", i)
		c.claim(held, owner, longLease, heads.ClaimNew, "of a free key")
		c.claim(released, owner, longLease, heads.ClaimNew, "of a free key")
		c.together(
			func(c *check) { c.tryClaim(free, other, longLease) },
			func(c *check) { c.done(free, owner, longLease) },
			func(c *check) { c.tryClaim(held, owner, longLease) },
			func(c *check) { c.done(held, other, longLease) },
			func(c *check) { c.release(released, owner) },
			func(c *check) { c.done(released, other, longLease) },
		)
		c.claim(free, third, longLease, heads.ClaimDone, "of a key that was settled at the same time as it was claimed")
		c.claim(held, third, longLease, heads.ClaimDone, "of a key that was settled at the same time as its owner extended the lease")
		c.claim(released, third, longLease, heads.ClaimDone, "of a key that was settled at the same time as its owner released it")
	}
}

func (c *check) releaseIsAtomic() {
	for i := range contestRounds {
		key := fmt.Sprint(c.key, "-", i)
		c.claim(key, owner, longLease, heads.ClaimNew, "of a free key")
		release := func(c *check) { c.release(key, owner) }
		c.together(release, release, release, func(c *check) { c.takeOver(key) })
		c.claim(key, third, longLease, heads.ClaimBusy, "of a key that was taken while its owner before released it")
	}
}

// takeOver claims a key that is being released.
func (c *check) takeOver(key string) {
	for try := 0; !c.over && c.tryClaim(key, other, longLease) != heads.ClaimNew; try++ {
		switch {
		case try == 1000:
			c.fault("Claim of a released key did not return new")
			return
		case try > 10:
			c.wait(time.Millisecond)
		}
	}
}

// With an ended context, a call may take effect or return an error. It must not
// hang, and must not report success without an effect.
func (c *check) endedContext() {
	ended, cancel := context.WithCancel(c.ctx)
	cancel()
	claimed, settled, released := c.key+"-claimed", c.key+"-settled", c.key+"-released"

	claim, err := guard(ended, func(ctx context.Context) (heads.Claim, error) {
		return c.d.Claim(ctx, claimed, owner, longLease)
	})
	if c.returned("Claim with an ended context", err) {
		c.want("Claim with an ended context, without an error,", claim, heads.ClaimNew)
		c.claim(claimed, other, longLease, heads.ClaimBusy, "of a key that was claimed with an ended context, without an error")
	}
	c.release(claimed, owner)
	c.claim(claimed, third, longLease, heads.ClaimNew, "of a key that was claimed with an ended context and released")

	_, err = guard(ended, func(ctx context.Context) (heads.Claim, error) {
		return 0, c.d.Done(ctx, settled, owner, longLease)
	})
	if c.returned("Done with an ended context", err) {
		c.claim(settled, other, longLease, heads.ClaimDone, "of a key that was settled with an ended context, without an error")
	}

	c.claim(released, owner, longLease, heads.ClaimNew, "of a free key")
	_, err = guard(ended, func(ctx context.Context) (heads.Claim, error) {
		return 0, c.d.Release(ctx, released, owner)
	})
	if c.returned("Release with an ended context", err) {
		c.claim(released, other, longLease, heads.ClaimNew, "of a key that was released with an ended context, without an error")
	}
}

// check is the check of one rule. It ends at the first call that
// returns an error, since later calls would report the same fault again.
type check struct {
	ctx  context.Context //nolint:containedctx // of the test
	d    heads.Deduplicator
	rule string
	key  string // begins all keys of this check

	over   bool
	faults []error
}

var errNotReturned = errors.New("did not return after its context ended")

func (c *check) fault(format string, args ...any) {
	err := fmt.Errorf(c.rule+": "+format, args...)
	said := func(e error) bool { return e.Error() == err.Error() }
	if !slices.ContainsFunc(c.faults, said) {
		c.faults = append(c.faults, err)
	}
}

// guard calls f, which may panic or not return. Done and Release have no claim.
func guard(ctx context.Context, f func(context.Context) (heads.Claim, error)) (heads.Claim, error) {
	type answer struct {
		claim heads.Claim
		err   error
	}
	answers := make(chan answer, 1) // not variables, since f may still run after guard has returned
	go func() {
		defer func() {
			if v := recover(); v != nil {
				answers <- answer{0, fmt.Errorf("panic: %v", v)}
			}
		}()
		claim, err := f(ctx)
		answers <- answer{claim, err}
	}()
	select {
	case a := <-answers:
		return a.claim, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-answers:
		return a.claim, a.err
	case <-time.After(callGrace):
		return 0, errNotReturned
	}
}

// call makes a call that must succeed.
func (c *check) call(what string, f func(context.Context) (heads.Claim, error)) heads.Claim {
	if c.over {
		return 0
	}
	ctx, cancel := context.WithTimeout(c.ctx, callTimeout)
	defer cancel()
	claim, err := guard(ctx, f)
	if err != nil {
		c.over = true
		c.fault("%s: %w", what, err)
	}
	return claim
}

// returned reports whether a call with an ended context succeeded. A failure is
// not a fault, unless the call did not return.
func (c *check) returned(what string, err error) bool {
	if errors.Is(err, errNotReturned) {
		c.over = true
		c.fault("%s %w", what, err)
	}
	return err == nil
}

func (c *check) want(what string, got, want heads.Claim) {
	if !c.over && got != want {
		c.fault("%s returned %v, want %v", what, got, want)
	}
}

// claim makes a call of Claim that must return want; when describes the situation.
func (c *check) claim(key, by string, lease time.Duration, want heads.Claim, when string) {
	c.want("Claim "+when, c.tryClaim(key, by, lease), want)
}

func (c *check) tryClaim(key, by string, lease time.Duration) heads.Claim {
	return c.call("Claim", func(ctx context.Context) (heads.Claim, error) { return c.d.Claim(ctx, key, by, lease) })
}

func (c *check) done(key, by string, memory time.Duration) {
	c.call("Done", func(ctx context.Context) (heads.Claim, error) { return 0, c.d.Done(ctx, key, by, memory) })
}

func (c *check) release(key, by string) {
	c.call("Release", func(ctx context.Context) (heads.Claim, error) { return 0, c.d.Release(ctx, key, by) })
}

// together makes calls at the same time, each with its own check.
func (c *check) together(calls ...func(*check)) {
	if c.over {
		return
	}
	checks := make([]*check, len(calls))
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i, call := range calls {
		checks[i] = &check{ctx: c.ctx, d: c.d, rule: c.rule}
		wg.Go(func() {
			<-start
			call(checks[i])
		})
	}
	close(start)
	wg.Wait()
	for _, one := range checks {
		c.over = c.over || one.over
		c.faults = append(c.faults, one.faults...)
	}
}

func (c *check) wait(d time.Duration) {
	if c.over {
		return
	}
	select {
	case <-time.After(d):
	case <-c.ctx.Done():
	}
}

// span is when a short lease or memory ends: not before earliest, and at most
// lateEnd after latest.
type span struct{ earliest, latest time.Time }

// begin makes the call that starts a short lease or memory.
func (c *check) begin(call func()) span {
	earliest := time.Now().Add(shortLease)
	call()
	return span{earliest, time.Now().Add(shortLease)}
}

// ends claims the key for another owner until that succeeds. Every answer before
// that must be the given one.
func (c *check) ends(s span, before heads.Claim) {
	for !c.over && c.ctx.Err() == nil {
		asked := time.Now()
		got := c.tryClaim(c.key, other, longLease)
		switch {
		case got == heads.ClaimNew && time.Now().Before(s.earliest):
			c.fault("Claim by another owner returned new before %v were over", shortLease)
			return
		case got == heads.ClaimNew:
			return
		case asked.After(s.latest.Add(lateEnd)):
			c.fault("Claim by another owner returned %v %v after %v were over, want new", got, lateEnd, shortLease)
			return
		}
		c.want("Claim by another owner", got, before)
		c.wait(pollEvery)
	}
}
