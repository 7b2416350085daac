package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/headstest"
)

func (a *app) demoCommand() *cobra.Command {
	var dir, format string
	cmd := &cobra.Command{
		Use: "demo", Short: "Start an emulator with 25 heads to try everything on", Args: want(0, 0, "no arguments"),
		Long: `Demo starts an emulator of the service on this machine, with 25 heads that have the
same ids on every run, and writes files to try the commands with: ids.csv,
heads.yaml, and a site with old access URLs. Ctrl-C ends it.`,
		Example: "  headsctl demo --dir demo",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("the output format", format, []string{"text", "json"}); err != nil {
				return err
			}
			return a.demo(cmd.Context(), dir, format == "json")
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "write the files to `DIR` (default: a temporary one)")
	cmd.Flags().StringVarP(&format, "output", "o", "text", "output `FORMAT`: text or json")
	return cmd
}

func (a *app) demo(ctx context.Context, dir string, asJSON bool) error {
	dir, err := demoFolder(dir)
	if err != nil {
		return err
	}
	// The ids are the same on every run. The token is random, since any program on this
	// machine could compute a fixed one.
	server := headstest.NewServer(headstest.WithSeed(demoSeed), headstest.WithToken(rand.Text()), headstest.WithLoopbackHTTP(), headstest.WithConsole())
	defer server.Close()
	ids := addDemoHeads(server.Emulator)
	if err := writeDemoFiles(ctx, server.Emulator, dir, ids); err != nil {
		return err
	}
	if asJSON {
		line, _ := json.Marshal(map[string]any{"base_url": server.URL, "token": server.Token, "dir": dir, "heads": ids})
		a.say("%s", line)
	} else {
		a.say("%s", demoText(server.URL, server.Token, dir))
	}
	<-ctx.Done()
	return nil
}

func demoText(url, token, dir string) string {
	lines := []string{
		"# The emulator is listening, with 25 heads. In another terminal:",
		"export HEADS_BASE_URL=" + show.ShellWord(url),
		"export HEADS_TOKEN=" + show.ShellWord(token),
		"",
		"# Watch it in a browser: " + url + "/_emulator/",
		"",
		"# Then try, in this order:",
	}
	in := func(name string) string { return show.ShellWord(filepath.Join(dir, name)) }
	lines = append(lines,
		"headsctl doctor -f "+in("ids.csv"),
		"headsctl plan -f "+in("heads.yaml"),
		"headsctl convert -f "+in("ids.csv")+" --report "+in("report.json")+" --report "+in("report.html"),
		"headsctl addresses rewrite --moves "+in("report.json")+" "+in("site"),
		"headsctl export -f "+in("ids.csv"),
		"",
		"# The files are in "+dir,
		"# Ctrl-C ends the emulator.",
	)
	return strings.Join(lines, "\n")
}

const demoMark = "# made by headsctl demo\n"

// demoFolder creates the folder of the files. It refuses a folder that holds other files than
// those of an earlier demo.
func demoFolder(dir string) (string, error) {
	if dir == "" {
		return os.MkdirTemp("", "headsctl-demo-")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return dir, os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return "", unreadable("--dir", dir, err)
	}
	ids, _ := os.ReadFile(filepath.Join(dir, "ids.csv"))
	if len(entries) > 0 && !strings.HasPrefix(string(ids), demoMark) {
		return "", usage("--dir %s holds other files; give a folder that is new or empty", show.Line(dir))
	}
	return dir, nil
}

// demoSeed makes the ids of the demo.
const demoSeed = 25

// demoNames are those of the heads, in the order of ids.csv.
var demoNames = []string{
	"Lobby", "Front Desk", "Museum Guide", "Ticket Office", "Gift Shop", "Cafeteria", "Library", "Cloakroom", "Lost and Found",
	"Parking", "Night Porter", "Concierge", // legacy
	"Welcome Screen", "Product Tour", "Support", "Careers", "Press Room", // streaming
	"Mascot", "Storyteller", "Santa", // two_loops
	"Audio Guide", "Elevator", // of a provider that can't stream
	"Order Desk", // with a broken tool
	"Newsletter", // with two registrations of one URL
	"Old Kiosk",  // not active
}

// addDemoHeads adds 12 heads in legacy mode, 5 that stream, 3 whose visual is
// in mode two_loops, 2 of a provider that can't stream, 1 with a broken tool, 1
// with two registrations of one URL, and 1 that is not active.
func addDemoHeads(e *headstest.Emulator) []string {
	plain := e.AddVisual(headstest.Visual{Mode: heads.VisualModeDefault})
	expressive := e.AddVisual(headstest.Visual{Mode: heads.VisualModeTwoLoops})
	var ids []string
	for i, name := range demoNames {
		h := headstest.Head{
			Name: name, HeadVisualID: plain, TTSProvider: "azure", TTSVoice: "en-US-plain", OperationMode: heads.OperationModeOC,
			Fields: map[string]any{
				"language": "en-US", "greetings": "Welcome! I am the " + name + ".",
				"promptConfig": map[string]any{"system_prompt": "You are the " + name + ". Answer in one sentence."},
			},
		}
		switch {
		case i >= 12 && i < 17:
			h.VideoStreaming = true
		case i >= 17 && i < 20:
			h.HeadVisualID = expressive
		case i == 20 || i == 21:
			h.TTSProvider, h.TTSVoice = "polly", "Joanna"
		case name == "Old Kiosk":
			h.Fields["isActive"] = false
		}
		ids = append(ids, e.AddHead(h))
	}
	addDemoTool(e, ids[22])
	addDemoWebhooks(e, ids[23])
	return ids
}

// addDemoTool adds a tool whose parameters are an object, which keeps the head
// from loading.
func addDemoTool(e *headstest.Emulator, id string) {
	tool := `{"name":"order_status","description":"Tells where an order is.","url":"https://shop.example.com/tools/order_status",` +
		`"parameters":{"type":"object","properties":{"order":{"type":"string"}}}}`
	must(e.AddTool(id, json.RawMessage(tool)))
}

func addDemoWebhooks(e *headstest.Emulator, id string) {
	for range 2 {
		_, _, err := e.AddWebhook(id, "https://crm.example.com/heads/events", heads.EventStartConversation, heads.EventEndConversation)
		must(err)
	}
}

// must panics if the emulator refuses a record of the demo.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// writeDemoFiles writes the files to try the commands with.
func writeDemoFiles(ctx context.Context, e *headstest.Emulator, dir string, ids []string) error {
	files := map[string]string{
		"ids.csv":           demoIDs(ids),
		"heads.yaml":        demoSpecs(ids),
		"environments.yaml": demoEnvironments(ids),
		"prompts/lobby.txt": "You are the receptionist. Greet visitors and tell them the way.\nAnswer in one sentence.\n",
	}
	client := e.Client()
	var addresses []string
	for _, id := range ids {
		h, err := client.Heads.Get(ctx, id)
		if err != nil {
			return err
		}
		addresses = append(addresses, h.PublicURL.Reveal())
	}
	demoSite(files, addresses)
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func demoIDs(ids []string) string {
	var b strings.Builder
	b.WriteString(demoMark + "id,label\n")
	for i, id := range ids {
		fmt.Fprintf(&b, "%s,%s\n", id, demoNames[i])
	}
	return b.String()
}

func demoSpecs(ids []string) string {
	return fmt.Sprintf(`# What is wanted of three heads.
defaults:
  set:
    isRandomSuggestions: true
heads:
  - id: %q
    label: Lobby
    set:
      greetings: Good to see you!
      promptConfig:
        system_prompt: {file: prompts/lobby.txt}
    streaming: true
  - id: %q
    label: Front Desk
    set:
      suggestions: [Where do I check in?, When is breakfast?]
    delivery: true
    webhooks:
      - url: https://crm.example.com/heads/events
        events: [start_conversation, end_conversation]
  - id: %q
    label: Museum Guide
    tools:
      - name: opening_hours
        description: Tells when the museum is open on a day.
        url: https://museum.example.com/tools/opening_hours
        parameters:
          - {name: day, type: string, description: The day of the week.}
`, ids[0], ids[1], ids[2])
}

// demoEnvironments returns a heads.yaml with two environments, which are two parts of the
// demo.
func demoEnvironments(ids []string) string {
	return fmt.Sprintf(`# What is wanted of two heads in staging and production. In the demo, both are this
# emulator, with other heads.
environments:
  staging:
    base_url: {env: HEADS_BASE_URL}
    token: {env: HEADS_TOKEN}
    values: {app: "https://staging.example.com"}
  production:
    base_url: {env: HEADS_BASE_URL}
    token: {env: HEADS_TOKEN}
    values: {app: "https://app.example.com"}
    protect: true
heads:
  - id: {staging: %q, production: %q}
    label: Cafeteria
    set:
      name: Cafeteria
      greetings: What would you like to eat?
      promptConfig: {system_prompt: You are the cafeteria of the museum. Answer in one sentence.}
    webhooks:
      - {url: "${app}/heads/events", events: [start_conversation, end_conversation]}
  - id: {staging: %q, production: null} # not there yet
    label: Night Porter
    set: {greetings: Who goes there?}
`, ids[5], ids[6], ids[10])
}

// demoSite adds pages that hold access URLs in different forms.
func demoSite(files map[string]string, addresses []string) {
	escaped := strings.ReplaceAll(addresses[1], "/", `\/`)
	relative := strings.TrimPrefix(addresses[2], "https:")
	files["site/index.html"] = fmt.Sprintf("<!doctype html>\n<title>Lobby</title>\n<iframe src=\"%s\" allow=\"microphone\"></iframe>\n<a href=\"%s\">Front desk</a>\n",
		strings.ReplaceAll(addresses[0], "&", "&amp;"), addresses[1])
	files["site/app.js"] = fmt.Sprintf("const guide = \"%s\";\nconst tickets = '%s';\n", relative, addresses[3])
	files["site/config.json"] = fmt.Sprintf("{\"frontDesk\": \"%s\"}\n", escaped)
	files["site/README.md"] = fmt.Sprintf("The gift shop is at <%s>.\n", addresses[4])
}
