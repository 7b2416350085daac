package main

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/redact"
)

func (a *app) callCommand() *cobra.Command {
	var data string
	var query []string
	var secrets bool
	cmd := &cobra.Command{
		Use: "call METHOD PATH", Short: "Call any operation of the service", Args: want(2, 2, "a method and a path"),
		Long: `Call sends a request to the service and prints the body of the answer, whatever
its status. The path is below the base URL. It ends with 1 if the status is
above 299.`,
		Example: `  headsctl call GET /head/0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01
  headsctl call PUT /head/0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01/enable-events --query enableEvents=true`,
		RunE: func(cmd *cobra.Command, args []string) error {
			request := heads.Request{Method: strings.ToUpper(args[0]), Path: args[1]}
			var err error
			if request.Body, err = a.callBody(data); err != nil {
				return err
			}
			if request.Query, err = callQuery(query); err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			response, err := c.Do(cmd.Context(), request)
			var refused *heads.Error
			switch {
			case err == nil:
				a.printBody(response.Body.Bytes(), secrets)
			case errors.As(err, &refused):
				a.printBody(refused.Body.Bytes(), secrets)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "send `JSON` as the body; @FILE sends a file, @- stdin")
	cmd.Flags().StringArrayVar(&query, "query", nil, "add `K=V` to the query; may be given again")
	showSecretsFlag(cmd, &secrets)
	return cmd
}

func (a *app) callBody(data string) (any, error) {
	if data == "" {
		return nil, nil
	}
	body := []byte(data)
	if path, isFile := strings.CutPrefix(data, "@"); isFile {
		var err error
		if body, err = a.readInput("the file of --data", path); err != nil {
			return nil, err
		}
	}
	if !json.Valid(body) {
		return nil, usage("--data is not JSON; put quotes around texts, and quote the whole for the shell")
	}
	return json.RawMessage(body), nil
}

func callQuery(pairs []string) (url.Values, error) {
	values := url.Values{}
	for _, pair := range pairs {
		name, value, found := strings.Cut(pair, "=")
		if !found || name == "" {
			return nil, usage("--query wants NAME=VALUE")
		}
		values.Add(name, value)
	}
	return values, nil
}

// printBody writes the body of an answer.
func (a *app) printBody(body []byte, secrets bool) {
	if !secrets {
		body = redact.Body(body)
	}
	if len(body) > 0 {
		a.stdout.Document(body)
	}
}
