package headsotel_test

import (
	"context"
	"fmt"
	"log"

	"github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headsotel"
)

func Example() {
	const baseURL, token, toolsURL = "https://api.example.com", "token", "https://tools.example.com/heads"
	keys := heads.SharedKeys("shared key of the registration")
	handle := func(context.Context, *heads.Event) error { return nil }
	err := func() error {
		client, err := heads.New(baseURL, token, headsotel.Client())
		if err != nil {
			return err
		}
		events, err := heads.NewEventHandler(keys, handle, headsotel.Events())
		if err != nil {
			return err
		}
		tools, err := heads.NewToolHandler(toolsURL, headsotel.Tools())
		if err != nil {
			return err
		}
		fmt.Println(client != nil, events != nil, tools != nil)
		return nil
	}()
	if err != nil {
		log.Fatal(err)
	}
	// Output: true true true
}
