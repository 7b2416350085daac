package heads

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// deliveryHook puts name into the context and appends the calls to order.
func deliveryHook(t testing.TB, order *[]string, name string) EventHandlerOption {
	var mu sync.Mutex // deliveries of a queue end on several goroutines
	called := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		*order = append(*order, what)
	}
	return WithDeliveryHook(func(ctx context.Context) context.Context {
		called("start " + name)
		return context.WithValue(ctx, hookKey{"delivery"}, name)
	}, func(ctx context.Context, info DeliveryInfo) {
		called("end " + name + " " + string(info.Outcome))
		assert.Equal(t, name, ctx.Value(hookKey{"delivery"}), "each hook gets its own context back")
	})
}

func TestContextOfADeliveryHookReachesTheEventFunction(t *testing.T) {
	for name, opts := range map[string][]EventHandlerOption{"direct": nil, "queued": {WithQueue(1, 10)}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var order []string
				keys := keyFunc(func(ctx context.Context, _ KeyHint) ([]string, error) {
					order = append(order, "keys")
					assert.Equal(t, "b", ctx.Value(hookKey{"delivery"}))
					return []string{testKeyA}, nil
				})
				h, err := NewEventHandler(keys, func(ctx context.Context, _ *Event) error {
					order = append(order, "function")
					assert.Equal(t, "b", ctx.Value(hookKey{"delivery"}))
					return nil
				}, append(opts, deliveryHook(t, &order, "a"), deliveryHook(t, &order, "b"))...)
				require.NoError(t, err)
				assert.Equal(t, 200, postEvent(h, "s"))
				require.NoError(t, h.Shutdown(t.Context()))
				assert.Equal(t, []string{"start a", "start b", "keys", "function", "end a handled", "end b handled"}, order)
			})
		})
	}
}

func TestDeliveryHookOfAQueuedEventOutlivesItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		turn := make(chan struct{})
		h := newTestHandler(t, func(context.Context, *Event) error { <-turn; return nil }, WithQueue(1, 10),
			WithDeliveryHook(nil, func(ctx context.Context, _ DeliveryInfo) { ended <- ctx.Err() }))
		ctx, end := context.WithCancel(t.Context())
		assert.Equal(t, 200, serveEvent(h, signedEvent(recentEventBody(testHeadA, "s"), testKeyA).WithContext(ctx)).Code)
		end()
		close(turn)
		require.NoError(t, <-ended)
	})
}

func TestDeliveryHooksSurroundEveryDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		h := newTestHandler(t, func(context.Context, *Event) error { return errors.New("broken") }, deliveryHook(t, &order, "a"))
		serveEvent(h, httptest.NewRequest(http.MethodGet, "/webhooks", nil))
		serveEvent(h, signedEvent(recentEventBody(testHeadA, "s"), testKeyB))
		postEvent(h, "s")
		require.NoError(t, h.Shutdown(t.Context()))
		postEvent(h, "s")
		assert.Equal(t, []string{"start a", "end a bad_method", "start a", "end a unauthorized", "start a", "end a failed", "start a", "end a shut_down"}, order)
	})
}

func TestDeliveryHookEndsWhatShutdownDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		h := newTestHandler(t, func(ctx context.Context, _ *Event) error { <-ctx.Done(); return ctx.Err() }, WithQueue(1, 10), deliveryHook(t, &order, "a"))
		postNthEvent(h, "s", 1)
		synctest.Wait()
		postNthEvent(h, "s", 2)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.Error(t, h.Shutdown(ctx))
		synctest.Wait()
		assert.ElementsMatch(t, []string{"start a", "start a", "end a dropped", "end a failed"}, order)
	})
}

func TestPanicsOfDeliveryHooksAreCaught(t *testing.T) {
	var log strings.Builder
	var order []string
	h := newTestHandler(t, (&eventCounter{}).handle, WithEventLogger(slog.New(slog.NewTextHandler(&log, nil))), WithDeliveryHook(
		func(context.Context) context.Context { panic("start broke") },
		func(context.Context, DeliveryInfo) { panic("end broke") },
	), deliveryHook(t, &order, "b"), WithDeliveryHook(func(context.Context) context.Context { return nil }, nil),
		WithDeliveryObserver(func(context.Context, DeliveryInfo) { panic("observer broke") }))
	assert.Equal(t, 200, postEvent(h, "s"))
	assert.Equal(t, []string{"start b", "end b handled"}, order)
	for _, text := range []string{"start broke", "end broke", "observer broke"} {
		assert.Contains(t, log.String(), text)
	}
	require.NoError(t, h.Shutdown(t.Context()), "the delivery has ended")
}

func TestDeliveryHookWithoutFunctionsIsRefused(t *testing.T) {
	_, err := NewEventHandler(SharedKeys(testKeyA), (&eventCounter{}).handle, WithDeliveryHook(nil, nil))
	require.ErrorIs(t, err, ErrInvalid)
}
