package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/console"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
)

// consent is the confirmation that flags give: --yes and --confirm.
type consent struct {
	yes  bool
	name string // of the environment
}

func (c *consent) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.yes, "yes", false, "do not ask, unless the environment is protected")
	cmd.Flags().StringVar(&c.name, "confirm", "", "do not ask; `NAME` is that of --env once more, a protected one too")
}

// needsConsent returns an error if the flags confirm nothing and there is no terminal to ask
// on. The rules of an environment are known only when its file was read; checkConsent checks
// them.
func (a *app) needsConsent(cmd *cobra.Command, given consent, file, env string) error {
	switch {
	case env != "":
		return nil
	case given.name != "":
		return usage("--confirm %s is for --env %s; add it", show.Line(given.name), show.Line(given.name))
	case given.yes || a.canAsk(file):
		return nil
	}
	return usage("there is no terminal to ask on; look at it with %s, then add --yes", look(cmd))
}

// checkConsent is needsConsent for the environment of --env.
func (a *app) checkConsent(cmd *cobra.Command, given consent, file string) error {
	e := a.environment
	switch {
	case e == nil:
		return nil
	case given.name != "" && given.name != e.Name:
		return usage("--confirm %s is not the environment of --env %s; give the same name twice", show.Line(given.name), e.Name)
	case given.name != "" || given.yes && !e.Protect || a.canAsk(file):
		return nil
	case e.Protect:
		return usage("%s is protected, and there is no terminal to ask on; look at it with %s, then add --confirm %s", e.Name, look(cmd), e.Name)
	}
	return usage("there is no terminal to ask on; look at it with %s, then add --yes", look(cmd))
}

// look is what shows the changes of a command without making them.
func look(cmd *cobra.Command) string {
	if cmd.Flags().Lookup("dry-run") != nil {
		return "--dry-run"
	}
	return "headsctl plan"
}

// canAsk reports whether there is a terminal to ask on. There is none if the file is read from
// stdin.
func (a *app) canAsk(file string) bool { return file != "-" && console.IsTerminal(a.stdin) }

// mustAsk reports whether the flags leave the question open.
func (a *app) mustAsk(given consent) bool {
	return given.name == "" && (!given.yes || a.environment != nil && a.environment.Protect)
}

// ask writes a question to stderr, and reports whether the answer is one of agree.
func (a *app) ask(ctx context.Context, question string, agree ...string) (bool, error) {
	_, _ = io.WriteString(a.stderr, question)
	answer := make(chan string, 1)
	go func() { answer <- readLine(a.stdin) }()
	select {
	case text := <-answer:
		return slices.Contains(agree, strings.TrimSpace(text)), nil
	case <-ctx.Done():
		a.note("")
		return false, ctx.Err()
	}
}

// readLine reads up to a line break, and no byte more.
func readLine(r io.Reader) string {
	var line []byte
	one := make([]byte, 1)
	for {
		n, err := r.Read(one)
		if n == 1 && one[0] != '\n' {
			line = append(line, one[0])
		}
		if err != nil || n == 1 && one[0] == '\n' {
			return string(line)
		}
	}
}
