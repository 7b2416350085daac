package headstest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
)

// headDetail is a head with all of its fields. Secrets are hidden.
type headDetail struct {
	headView
	Fields document   `json:"fields"`
	Forms  []toolForm `json:"forms"` // of the tools
}

// toolForm is the form to call a tool.
type toolForm struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  []toolFormField `json:"parameters"`
}

type toolFormField struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
}

// record returns a copy of a head's document.
func (c *control) record(r *http.Request) (document, error) {
	c.emulator.mu.Lock()
	defer c.emulator.mu.Unlock()
	h, err := c.emulator.run.head(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	var d document
	return d, json.Unmarshal(h.encode(), &d)
}

func (c *control) getHead(r *http.Request) (any, error) {
	d, err := c.record(r)
	if err != nil {
		return nil, err
	}
	return headDetail{viewHead(d.encode()), concealDocument(d), formsOf(d)}, nil
}

// formsOf skips items that are not tools.
func formsOf(d document) []toolForm {
	forms := []toolForm{}
	for _, tool := range toolsOf(d) {
		if tool.str("name") == "" {
			continue
		}
		form := toolForm{tool.str("name"), tool.str("description"), []toolFormField{}}
		for _, p := range objects(tool["parameters"]) { // parameters as an object have no fields to show
			form.Parameters = append(form.Parameters, toolFormField{p.str("name"), p.str("type"), p.str("description")})
		}
		forms = append(forms, form)
	}
	return forms
}

// getAddress returns the access URL with its key.
func (c *control) getAddress(r *http.Request) (any, error) {
	if err := admitSecret(r); err != nil {
		return nil, err
	}
	d, err := c.record(r)
	if err != nil {
		return nil, err
	}
	return map[string]string{"address": d.str("publicUrl")}, nil
}

// updateHead sends the body as PUT /head/update with the head's id. A body that is
// not an object is sent as it is, and the operation refuses it.
func (c *control) updateHead(r *http.Request) (any, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	var sent document
	if json.Unmarshal(body, &sent) == nil && sent != nil {
		sent.set("id", r.PathValue("id"))
		body = sent.encode()
	}
	return c.operateHead(r, "/head/update", body)
}

func (c *control) switchStreaming(r *http.Request) (any, error) {
	return c.operateSwitch(r, "video-streaming", "videoStreaming")
}

func (c *control) switchEvents(r *http.Request) (any, error) {
	return c.operateSwitch(r, "enable-events", "enableEvents")
}

// operateSwitch turns a switch of a head on or off.
func (c *control) operateSwitch(r *http.Request, operation, name string) (any, error) {
	var sent document
	if err := decodeBody(r, &sent); err != nil {
		return nil, err
	}
	on, ok := decode(sent[name]).(bool)
	if !ok || len(sent) != 1 {
		return nil, refuse(http.StatusBadRequest, "the body must be an object with %s, true or false, and nothing else", name)
	}
	return c.operateHead(r, fmt.Sprintf("/head/%s/%s?%s=%t", url.PathEscape(r.PathValue("id")), operation, name, on), nil)
}

// splitter turns on text splitting.
func (c *control) splitter(r *http.Request) (any, error) {
	if err := c.requireHead(r.PathValue("id")); err != nil {
		return nil, err
	}
	return c.operateHead(r, "/head/"+url.PathEscape(r.PathValue("id"))+"/splitter?splitter=true", nil)
}

// operateHead sends a PUT to an operation. It returns the head and not the answer of the
// operation, which may hold keys.
func (c *control) operateHead(r *http.Request, target string, body []byte) (any, error) {
	if err := c.operate(r, http.MethodPut, target, body); err != nil {
		return nil, err
	}
	d, err := c.record(r)
	if err != nil {
		return nil, err
	}
	return viewHead(d.encode()), nil
}

// operate sends a request to an operation, with the emulator's token. Like any other request,
// it is in the journal, and it can have a fault unless the page sends it.
func (c *control) operate(r *http.Request, method, target string, body []byte) error {
	req := httptest.NewRequestWithContext(r.Context(), method, target, bytes.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+c.emulator.token)
	req.Header.Set(consoleHeader, r.Header.Get(consoleHeader))
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	rec := httptest.NewRecorder()
	cut := serve(http.HandlerFunc(c.emulator.serveOperation), rec, req)
	switch {
	case cut:
		return refuse(http.StatusBadGateway, "a fault cut the connection; the operation answered nothing whole")
	case rec.Code/100 != 2:
		return refuse(rec.Code, "%s", messageOf(rec.Body.Bytes(), rec.Code))
	}
	return nil
}

// deleteWebhook sends DELETE /head-events/{webhookId}.
func (c *control) deleteWebhook(r *http.Request) (any, error) {
	id := r.PathValue("id")
	if err := c.operate(r, http.MethodDelete, "/head-events/"+url.PathEscape(id), nil); err != nil {
		return nil, err
	}
	return map[string]string{"deleted": id}, nil
}

// messageOf returns the message of a refusal.
func messageOf(body []byte, status int) string {
	var said struct{ Message string }
	if json.Unmarshal(body, &said) == nil && said.Message != "" {
		return said.Message
	}
	return cmp.Or(string(bytes.TrimSpace(body)), http.StatusText(status))
}
