package main

import (
	"cmp"
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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
)

const referencePage = "../../docs/reference/headsctl.md"

var updateDocs = flag.Bool("update-docs", false, "write docs/reference/headsctl.md")

func TestTheReferenceIsCurrent(t *testing.T) {
	want := reference()
	if *updateDocs {
		require.NoError(t, os.WriteFile(referencePage, []byte(want), 0o644))
	}
	assert.Equal(t, want, contents(t, referencePage), "write it with: go test -run TestTheReferenceIsCurrent . -update-docs")
}

func reference() string {
	root := rootCommand()
	text := "# headsctl: the commands\n\nThis page is generated from the commands.\n\n"
	for _, c := range commandsBelow(root) {
		if c.Name() == "help" {
			continue
		}
		text += fmt.Sprintf("## %s\n\n```text\n%s\n\n%s\n", c.CommandPath(), strings.TrimSuffix(c.UseLine(), " [flags]"), cmp.Or(c.Long, c.Short+"."))
		if flags := c.LocalNonPersistentFlags().FlagUsages(); flags != "" {
			text += "\n" + flags
		}
		text += "```\n\n"
	}
	return text + "## All commands\n\n```text\n" + root.PersistentFlags().FlagUsages() + "```\n"
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

func TestTheTourRuns(t *testing.T) {
	c := demoIn(t, "demo")
	receiver := serving(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	const body = `{"event_type":"end_conversation"}`
	c.write("delivery.json", body)
	c = c.with("RECEIVER_URL="+receiver.URL, "HEADS_SHARED_KEY=shared-key", "SIGNATURE="+heads.Sign([]byte(body), "shared-key"))
	ran := 0
	for _, block := range shellBlock.FindAllStringSubmatch(contents(t, "../../docs/headsctl.md"), -1) {
		for _, command := range lines(block[1]) {
			c.shell(command)
			ran++
		}
	}
	assert.GreaterOrEqual(t, ran, 25)
}
