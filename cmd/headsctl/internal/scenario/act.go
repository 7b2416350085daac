package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/similar"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/headstest"
)

// maxReply is how much of a reply of the back end is read.
const maxReply = 8 << 20

// user acts as the user of a session.
func (w *world) user(st *step) error {
	s, err := w.open(st)
	if err != nil {
		return err
	}
	if st.action == "say" {
		text, err := w.vars.text(st.arg)
		if err != nil {
			return withoutPlace(err)
		}
		return plainError(s.UserMessage(text))
	}
	switch st.arg.Text {
	case "inactive":
		return plainError(s.Inactive())
	case "timeout":
		return plainError(s.Timeout())
	}
	return plainError(s.Close())
}

// plainError leaves out the name of the package.
func plainError(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.TrimPrefix(err.Error(), "headstest: "))
}

// fault injects a fault, or removes all.
func (w *world) fault(st *step) error {
	if st.arg.Kind == yamltext.Text {
		w.emulator.RemoveFaults()
		return nil
	}
	st, err := w.expanded(st)
	if err != nil {
		return err
	}
	if faults := testSchema.Check(st.arg, "fault", faultChecks); len(faults) > 0 {
		return withoutPlace(faults[0])
	}
	if request, event := readFault(st.arg); request != nil {
		w.emulator.Inject(*request)
	} else {
		w.emulator.InjectDelivery(*event)
	}
	return nil
}

// call calls a tool of the head once.
func (w *world) call(ctx context.Context, st *step) error {
	s, err := w.open(st)
	if err != nil {
		return err
	}
	if st, err = w.expanded(st); err != nil {
		return err
	}
	arguments, err := w.arguments(st, s.head)
	if err != nil {
		return err
	}
	expect := st.Get("expect")
	limited := ctx
	if within := expect.Get("within"); within.IsGiven() {
		d := durationOf(within, 0)
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, d, fmt.Errorf("the tool has not answered within %v", d))
		defer cancel()
	}
	began := time.Now()
	call, err := s.CallTool(limited, st.arg.Text, arguments)
	if err != nil {
		w.calls = append(w.calls, happened{began, fmt.Sprintf("call of %s: no reply in %v", shown(st.arg.Text), roundTime(time.Since(began)))})
		if cause := context.Cause(limited); cause != nil {
			return cause
		}
		return plainError(err)
	}
	w.calls = append(w.calls, happened{began, callText(st.arg.Text, call, time.Since(began))})
	if found := compareCall(expect, call); found != nil {
		return found
	}
	return w.save(st, call.Reply)
}

func callText(tool string, call *headstest.ToolCall, took time.Duration) string {
	text := fmt.Sprintf("call of %s: %d", shown(tool), call.Status)
	if call.Problem != "" {
		text += ", " + shown(call.Problem)
	}
	return text + " in " + roundTime(took).String()
}

// compareCall compares a reply of a tool. It has the contract's form unless another
// one is expected.
func compareCall(expect *yamltext.Value, call *headstest.ToolCall) error {
	if call.Problem != "" && expect.Get("problem") == nil && expect.Get("status") == nil {
		return &problem{"the reply is not in the contract's form: " + call.Problem, `status 200 and {"message": "…"}`,
			fmt.Sprintf("status %d and %s", call.Status, shown(string(call.Reply)))}
	}
	if expect == nil {
		return nil
	}
	for _, m := range expect.Members {
		var found *mismatch
		switch m.Key {
		case "status":
			found = compareNumber(m.Value, call.Status, "status")
		case "message":
			found = compare(m.Value, call.Message, call.Problem == "", "message")
		case "problem":
			found = compare(m.Value, call.Problem, call.Problem != "", "problem")
		case "body":
			found = compareText(m.Value, string(call.Reply), "body")
		case "json":
			found = comparePaths(m.Value, call.Reply, "json")
		}
		if found != nil {
			return found.problem()
		}
	}
	return nil
}

// arguments returns those of a call. Those that the tool, as the head has it now, does
// not declare are refused.
func (w *world) arguments(st *step, h head) (map[string]any, error) {
	arguments := map[string]any{}
	declared, known, err := w.declared(h, st.arg.Text)
	if err != nil {
		return nil, err
	}
	with := st.Get("with")
	if !with.IsGiven() {
		return arguments, nil
	}
	for _, m := range with.Members {
		unchecked := st.Get("unchecked")
		if known && !unchecked.IsTrue() && !slices.Contains(declared, m.Key) {
			return nil, &problem{fmt.Sprintf("the tool %s declares no parameter %q%s; use one that it declares, or add unchecked: true", shown(st.arg.Text), shown(m.Key), similar.Hint(m.Key, declared)),
				"one of " + strings.Join(declared, ", "), m.Key}
		}
		document, err := m.Value.AppendJSON(nil)
		if err != nil {
			return nil, withoutPlace(err)
		}
		arguments[m.Key] = json.RawMessage(document)
	}
	return arguments, nil
}

// declared returns the parameters of a tool. They are not known if they have another
// form than the contract's.
func (w *world) declared(h head, tool string) (parameters []string, known bool, err error) {
	var document struct {
		ConversationSettings struct {
			Tools []struct {
				Name       string
				Parameters json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(w.document(h.id), &document); err != nil {
		return nil, false, err
	}
	var names []string
	for _, t := range document.ConversationSettings.Tools {
		names = append(names, t.Name)
		if t.Name != tool {
			continue
		}
		var declared []struct{ Name string }
		if len(t.Parameters) > 0 && json.Unmarshal(t.Parameters, &declared) != nil {
			return nil, false, nil //nolint:nilerr // another form is not known
		}
		for _, p := range declared {
			parameters = append(parameters, p.Name)
		}
		return parameters, true, nil
	}
	return nil, false, fmt.Errorf("the head has no tool %q%s", shown(tool), similar.Hint(tool, names))
}

// save keeps values of a reply as variables.
func (w *world) save(st *step, reply []byte) error {
	save := st.Get("save")
	if save == nil {
		return nil
	}
	for _, m := range save.Members {
		v, err := pick(reply, m.Value.Text)
		if err != nil {
			return fmt.Errorf("save %s: %s: %w", m.Key, shown(m.Value.Text), err)
		}
		w.vars[m.Key] = v
		w.saved = append(w.saved, m.Key)
	}
	return nil
}

// http sends a request to the back end. A GET is repeated until its expectation
// holds, others are sent once.
func (w *world) http(ctx context.Context, st *step) error {
	st, err := w.expanded(st)
	if err != nil {
		return err
	}
	method, _, _ := strings.Cut(st.arg.Text, " ")
	var body []byte
	look := func(ctx context.Context) verdict {
		status, reply, err := w.send(ctx, st)
		if err != nil {
			return verdict{&problem{text: "the request was not answered: " + err.Error()}, method != http.MethodGet}
		}
		body = reply
		return verdict{compareHTTP(st.Get("expect"), status, reply), method != http.MethodGet}
	}
	if method != http.MethodGet {
		err = w.once(ctx, st, look)
	} else {
		err = w.await(ctx, st, look)
	}
	if err != nil {
		return err
	}
	return w.save(st, body)
}

// once checks a single time.
func (w *world) once(ctx context.Context, st *step, look func(context.Context) verdict) error {
	limited, cancel := context.WithTimeoutCause(ctx, st.within, fmt.Errorf("no answer within %v", st.within))
	defer cancel()
	if v := look(limited); v.problem != nil {
		return v.problem
	}
	return nil
}

func (w *world) send(ctx context.Context, st *step) (status int, reply []byte, err error) {
	method, path, _ := strings.Cut(st.arg.Text, " ")
	var body io.Reader = http.NoBody
	content := st.Get("body")
	if content != nil {
		document := []byte(content.Text)
		if content.Kind != yamltext.Text {
			if document, err = content.AppendJSON(nil); err != nil {
				return 0, nil, withoutPlace(err)
			}
		}
		body = bytes.NewReader(document)
	}
	request, err := http.NewRequestWithContext(ctx, method, w.base+path, body)
	if err != nil {
		return 0, nil, orCause(ctx, err)
	}
	if content != nil && content.Kind != yamltext.Text {
		request.Header.Set("Content-Type", "application/json")
	}
	if headers := st.Get("headers"); headers.IsGiven() {
		for _, m := range headers.Members {
			request.Header.Set(m.Key, m.Value.Text)
			if strings.EqualFold(m.Key, "Host") {
				request.Host = m.Value.Text
			}
		}
	}
	response, err := w.client.Do(request)
	if err != nil {
		return 0, nil, orCause(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	reply, err = io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err != nil {
		return 0, nil, orCause(ctx, err)
	}
	return response.StatusCode, reply, nil
}

// compareHTTP compares an answer of the back end. It is 2xx unless another status is
// expected.
func compareHTTP(expect *yamltext.Value, status int, reply []byte) *problem {
	if expect.Get("status") == nil && status/100 != 2 {
		return &problem{"status " + notAsExpected, "2xx", fmt.Sprintf("%d: %s", status, shown(string(reply)))}
	}
	if expect == nil {
		return nil
	}
	for _, m := range expect.Members {
		var found *mismatch
		switch m.Key {
		case "status":
			found = compareNumber(m.Value, status, "status")
		case "body":
			found = compareText(m.Value, string(reply), "body")
		case "json":
			found = comparePaths(m.Value, reply, "json")
		}
		if found != nil {
			return found.problem()
		}
	}
	return nil
}

// program runs a program of the user until its expectation holds.
func (w *world) program(ctx context.Context, st *step) error {
	words, err := w.words(st.arg)
	if err != nil {
		return withoutPlace(err)
	}
	if st, err = w.expanded(st); err != nil {
		return err
	}
	return w.await(ctx, st, func(ctx context.Context) verdict {
		var stdout, stderr limitedBuffer
		started, err := w.processes.start(command{words, w.s.folder, w.shellEnvironment()}, &stdout, &stderr)
		if err != nil {
			return verdict{&problem{text: err.Error()}, true}
		}
		select {
		case <-started.ended:
			started.kill() // what it has left behind
		case <-ctx.Done():
			started.kill()
			return verdict{problem: &problem{text: "the program has not ended"}}
		}
		return verdict{problem: compareRun(st.Get("expect"), started.cmd.ProcessState.ExitCode(), stdout.String(), stderr.String())}
	})
}

// compareRun compares how a program has ended. Its exit code is 0 unless another one
// is expected.
func compareRun(expect *yamltext.Value, exit int, stdout, stderr string) *problem {
	if expect.Get("exit") == nil && exit != 0 {
		return &problem{"the exit code " + notAsExpected, "0", fmt.Sprintf("%d: %s", exit, shown(stdout+stderr))}
	}
	if expect == nil {
		return nil
	}
	for _, m := range expect.Members {
		var found *mismatch
		switch m.Key {
		case "exit":
			found = compareNumber(m.Value, exit, "exit")
		case "stdout":
			found = compareText(m.Value, stdout, "stdout")
		case "stderr":
			found = compareText(m.Value, stderr, "stderr")
		}
		if found != nil {
			return found.problem()
		}
	}
	return nil
}

// limitedBuffer keeps the first part of an output.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if room := maxReply - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
