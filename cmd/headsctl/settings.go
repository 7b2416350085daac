package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
)

// client returns a client with the settings of --env or of the shell, and of
// --token-file.
func (a *app) client(opts ...heads.Option) (*heads.Client, error) {
	token := ""
	if a.tokenFile != "" {
		var err error
		if token, err = a.readSecret("--token-file", a.tokenFile); err != nil {
			return nil, err
		}
		a.hideToken(token)
		if err := os.Setenv("HEADS_TOKEN", token); err != nil { // of this process alone
			return nil, err
		}
	}
	if a.environment != nil {
		return a.clientIn(a.environment, token, opts...)
	}
	c, err := heads.NewFromEnv(append(a.clientOptions(), opts...)...)
	return c, faulty(err)
}

func (a *app) clientOptions() []heads.Option {
	return []heads.Option{heads.WithApplication("headsctl", heads.Version), heads.WithObserver(heads.Observer[heads.Attempt]{End: a.observe})}
}

// baseURL returns the base URL of the client.
func (a *app) baseURL() string {
	if a.environment == nil {
		return os.Getenv("HEADS_BASE_URL")
	}
	text, _ := a.environment.BaseURL.Value() // a fault was that of the client
	return text
}

// observe counts the attempts and prints them with --debug.
func (a *app) observe(_ context.Context, t heads.Attempt) {
	a.requests.Add(1)
	if !a.debug {
		return
	}
	line := fmt.Sprintf("debug: %s %s", t.Method, t.Route)
	if t.StatusCode != 0 {
		line += fmt.Sprintf(" %d", t.StatusCode)
	}
	line += " in " + t.Duration.Round(100*time.Microsecond).String()
	if t.Number > 1 {
		line += fmt.Sprintf(", attempt %d", t.Number)
	}
	if t.Waited > 0 {
		line += ", waited " + t.Waited.Round(time.Millisecond).String()
	}
	if t.RequestID != "" {
		line += ", request " + show.Line(t.RequestID)
	}
	if t.Err != nil && t.StatusCode == 0 {
		line += ": " + show.Line(t.Err.Error())
	}
	a.note("%s", line)
}

// clientIn returns a client for an environment. If token is not empty, it replaces that of the
// file.
func (a *app) clientIn(e *headsfile.Environment, token string, opts ...heads.Option) (*heads.Client, error) {
	c, err := e.Client(token, append(a.clientOptions(), opts...)...)
	switch {
	case errors.Is(err, heads.ErrInvalid):
		return nil, faulty(err) // of the token
	case err != nil:
		return nil, inFile(a.headsFile, err)
	}
	return c, nil
}

// environmentName is the name of --env, or "".
func (a *app) environmentName() string {
	if a.environment == nil {
		return ""
	}
	return a.environment.Name
}
