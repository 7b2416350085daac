package headsredis_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headsredis"
	"github.com/redis/go-redis/v9"
)

func ExampleNew() {
	keys := heads.SharedKeys("the key of the registration")
	handle := func(_ context.Context, e *heads.Event) error {
		fmt.Println(e.Type)
		return nil
	}
	receiver := func() (http.Handler, error) {
		client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{"redis.internal:6379"}})
		store, err := headsredis.New(client)
		if err != nil {
			return nil, err
		}
		return heads.NewEventHandler(keys, handle, heads.WithDeduplicator(store))
	}
	handler, err := receiver()
	fmt.Println(handler != nil, err)
	// Output: true <nil>
}
