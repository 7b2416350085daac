// Greeter lets a head call the tools of an MCP server that runs as a process of
// its own. Without arguments it starts the hello server of the MCP SDK:
//
//	go run ./examples/greeter
//
// With arguments, they are the command of the server. An emulator inside the
// program has the head and calls the first tool, with the name Ada.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headsmcp"
	"github.com/headsapi/heads-go/headstest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("greeter", flag.ContinueOnError)
	if err := flags.Parse(args); err != nil {
		return err
	}
	command := flags.Args()
	if len(command) == 0 {
		command = []string{"go", "run", "github.com/modelcontextprotocol/go-sdk/examples/server/hello"}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: exec.Command(command[0], command[1:]...)}, nil)
	if err != nil {
		return err
	}
	defer session.Close()

	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	tools, err := heads.NewToolHandler(server.URL, heads.WithPathToken("6ab1d4e77c0f4b0e9d2f6ab1d4e77c0f"))
	if err != nil {
		return err
	}
	mux.Handle("/", tools)
	names, err := headsmcp.AddTools(ctx, tools, session)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return errors.New("the server offers no tool")
	}
	return converse(ctx, out, tools, names[0])
}

// converse registers the tools on a head of an emulator, which calls one.
func converse(ctx context.Context, out io.Writer, tools *heads.ToolHandler, name string) error {
	service := headstest.NewServer(headstest.WithLoopbackHTTP())
	defer service.Close()
	headID := service.AddHead(headstest.Head{Name: "Ada", OperationMode: heads.OperationModeOC})
	if _, err := service.Client().ConversationSettings.SetTools(ctx, headID, tools.Tools()...); err != nil {
		return err
	}
	for _, t := range tools.Tools() {
		fmt.Fprintf(out, "registered %s: %s\n", t.Name, t.Description)
		for _, p := range t.Parameters {
			fmt.Fprintf(out, "  %s (%s): %s\n", p.Name, p.Type, p.Description)
		}
	}
	for _, arguments := range []map[string]any{{"name": "Ada"}, {}} {
		called, err := service.CallTool(ctx, headID, name, arguments)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s %v: %s\n", name, arguments, called.Message)
	}
	return nil
}
