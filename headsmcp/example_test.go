package headsmcp_test

import (
	"context"
	"fmt"
	"log"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headsmcp"
)

// newTransport returns a way to a server with two tools.
func newTransport(ctx context.Context) mcp.Transport {
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	type order struct {
		Number int `json:"number" jsonschema:"Number of the order"`
	}
	for _, name := range []string{"find_order", "delete_order"} {
		mcp.AddTool(server, &mcp.Tool{Name: name, Description: "Works on an order"}, func(context.Context, *mcp.CallToolRequest, order) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{}, nil, nil
		})
	}
	near, far := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, far, nil); err != nil {
		log.Fatal(err)
	}
	return near
}

func ExampleAddTools() {
	ctx := context.Background()
	tools, err := heads.NewToolHandler("https://tools.example.com/heads", heads.WithPathToken("6ab1d4e77c0f4b0e9d2f6ab1d4e77c0f"))
	if err != nil {
		log.Fatal(err)
	}
	transport := newTransport(ctx)
	err = func() error {
		client := mcp.NewClient(&mcp.Implementation{Name: "my-back-end", Version: "1.0.0"}, nil)
		session, err := client.Connect(ctx, transport, nil) // or an mcp.CommandTransport, mcp.StreamableClientTransport
		if err != nil {
			return err
		}
		names, err := headsmcp.AddTools(ctx, tools, session, headsmcp.Only("find_order"), headsmcp.Prefix("shop_"))
		if err != nil {
			return err
		}
		fmt.Println(names)
		return nil
	}()
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range tools.Tools()[0].Parameters {
		fmt.Printf("%s (%s): %s\n", p.Name, p.Type, p.Description)
	}
	// Output:
	// [shop_find_order]
	// number (integer): Number of the order.
}

// A server that dies is started again by the next call.
func ExampleReconnect() {
	client := mcp.NewClient(&mcp.Implementation{Name: "my-back-end", Version: "1.0.0"}, nil)
	addTools := func(ctx context.Context, tools *heads.ToolHandler) error {
		connect := func(ctx context.Context) (*mcp.ClientSession, error) {
			return client.Connect(ctx, &mcp.CommandTransport{Command: exec.Command("shop-server")}, nil)
		}
		session, err := connect(ctx)
		if err != nil {
			return err
		}
		names, err := headsmcp.AddTools(ctx, tools, session, headsmcp.Reconnect(connect))
		if err != nil {
			return err
		}
		fmt.Println(names)
		return nil
	}
	_ = addTools
}

func ExampleChanged() {
	ctx := context.Background()
	transport := newTransport(ctx)
	rebuild := func() {} // a new ToolHandler, AddTools, SetTools

	options := &mcp.ClientOptions{}
	changed := headsmcp.Changed(options)
	client := mcp.NewClient(&mcp.Implementation{Name: "my-back-end", Version: "1.0.0"}, options)
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	go func() {
		for range changed {
			rebuild()
		}
	}()
}
