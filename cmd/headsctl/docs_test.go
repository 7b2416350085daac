package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
)

const (
	page           = "../../docs/headsctl.md"
	reference      = "../../docs/reference/headsctl.md"
	referenceTitle = "# headsctl: the commands\n\nThis page is generated from the commands.\n\n"
)

var updateDocs = flag.Bool("update-docs", false, "write docs/reference/headsctl.md")

func TestTheReferenceIsCurrent(t *testing.T) {
	want := referenceTitle + referenceOf(newRootCommand(newApp(os.Stdin, os.Stdout, os.Stderr, nil)))
	if *updateDocs {
		require.NoError(t, os.MkdirAll(filepath.Dir(reference), 0o755))
		require.NoError(t, os.WriteFile(reference, []byte(want), 0o644))
		return
	}
	text, err := os.ReadFile(reference)
	require.NoError(t, err)
	assert.Equal(t, want, string(text), "write it with: go test -run TestTheReferenceIsCurrent . -update-docs")
}

// referenceOf describes all commands below cmd.
func referenceOf(cmd *cobra.Command) string {
	var b strings.Builder
	for _, c := range cmd.Commands() {
		if c.Name() == "help" {
			continue
		}
		if c.HasSubCommands() {
			b.WriteString(referenceOf(c))
			continue
		}
		about := c.Long
		if about == "" {
			about = c.Short + "."
		}
		fmt.Fprintf(&b, "## %s\n\n```text\n%s\n\n%s\n", c.CommandPath(), strings.TrimSuffix(c.UseLine(), " [flags]"), about)
		if flags := flagsOf(c); flags != "" {
			fmt.Fprintf(&b, "\n%s", flags)
		}
		b.WriteString("```\n\n")
	}
	if cmd.HasParent() {
		return b.String()
	}
	return b.String() + "## All commands\n\n```text\n" + cmd.PersistentFlags().FlagUsages() + "```\n"
}

func flagsOf(c *cobra.Command) string {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.AddFlagSet(c.LocalNonPersistentFlags())
	return own.FlagUsages()
}

var (
	shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")
	endsWith   = regexp.MustCompile(`# ends with (\d+)`)
)

// shell runs commands of a page, asserts the exit code that they are said to end with, and
// returns what they print.
func (c *terminal) shell(commands string) string {
	c.t.Helper()
	code := "0"
	if found := endsWith.FindStringSubmatch(commands); found != nil {
		code = found[1]
	}
	cmd := exec.CommandContext(c.t.Context(), "bash", "-ec", commands)
	cmd.Env, cmd.Dir = append(c.env, "PATH="+filepath.Dir(headsctl)+string(filepath.ListSeparator)+os.Getenv("PATH")), c.dir
	out, err := cmd.CombinedOutput()
	assert.Equal(c.t, code, strconv.Itoa(exitCode(c.t, err)), "%s\n%s", commands, out)
	return string(out)
}

// TestTheTourRuns runs every command of the page as it stands.
func TestTheTourRuns(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	c := demoIn(t, "demo")
	receiver := serving(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	const body = `{"event_type":"end_conversation"}`
	c.write("delivery.json", body)
	c = c.with("RECEIVER_URL="+receiver.URL, "HEADS_SHARED_KEY=shared-key", "SIGNATURE="+heads.Sign([]byte(body), "shared-key"))
	ran := 0
	for _, block := range shellBlock.FindAllSubmatch(text, -1) {
		for scanner := bufio.NewScanner(bytes.NewReader(block[1])); scanner.Scan(); ran++ {
			c.shell(scanner.Text())
		}
	}
	assert.GreaterOrEqual(t, ran, 25)
}
