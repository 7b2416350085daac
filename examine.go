package heads

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/headsapi/heads-go/internal/check"
	"github.com/headsapi/heads-go/internal/loopback"
	"github.com/headsapi/heads-go/internal/nearest"
	"github.com/headsapi/heads-go/internal/rawjson"
	"github.com/headsapi/heads-go/internal/registration"
)

// Examination is what Heads.Examine found out about a head. It holds no
// secrets.
type Examination struct {
	HeadID   string    `json:"head_id"`
	Name     string    `json:"name"`
	Mode     string    `json:"mode"`     // "legacy" or "streaming"
	Findings []Finding `json:"findings"` // empty, but not nil, if there are none
}

// Finding is one thing about a head that is wrong, or that someone should know.
type Finding struct {
	Code     string   `json:"code"` // such as "webhook_duplicate"; see Heads.Examine
	Severity Severity `json:"severity"`
	Subject  string   `json:"subject"`       // a field's JSON name, "tool NAME", "tool NAME.PARAMETER" or "webhook ID"
	Problem  string   `json:"problem"`       // a sentence
	Remedy   string   `json:"remedy"`        // what to do about it, a sentence, in Go's terms
	Use      string   `json:"use,omitempty"` // the method, option or field that Remedy names, such as "Webhooks.Ensure"; "" if none
}

// Severity grades a finding.
type Severity string

// The severities of findings. An error keeps the head, or a part of it, from
// working. A warning is likely a mistake. A note only matters to someone who wants
// to convert the head or to change its tools.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityNote    Severity = "note"
)

// Examine searches the configuration of a head for faults. It only reads.
//
// GET /head/{id}, GET /head_visual/{headVisualId}, GET /head-events. The codes
// of its findings, by severity:
//
//   - error: inactive, splitter (on while the head streams), webhook_http,
//     tool_invalid (keeps the head from loading), tool_duplicate, access_url,
//     placeholder
//   - warning: delivery_without_webhook, webhook_without_delivery,
//     webhook_without_event, webhook_duplicate, tools_without_oc,
//     tool_not_in_prompt, parameter_not_in_prompt, access_url_mode (the base of
//     WithAccessBases for the other mode), language
//   - note: visual_mode, provider (can't stream; an error if the head streams),
//     visual_unknown, voice_model (not one that is recommended for streaming),
//     parameter_untyped, parameter_type (not one that the contract names)
//
// An error means that the head, its visual or its registrations could not be
// read. A visual that does not exist is a finding.
func (s *HeadsService) Examine(ctx context.Context, headID string) (*Examination, error) {
	head, err := s.Get(ctx, headID)
	if err != nil {
		return nil, err
	}
	hooks, err := (&WebhooksService{s.service}).List(ctx, headID)
	if err != nil {
		return nil, err
	}
	x := &examiner{core: s.core, head: head, hooks: hooks, findings: []Finding{}}
	x.examineHead()
	x.examineAddress()
	x.examineWebhooks()
	x.examineTools()
	if err := x.examineVisual(ctx, &HeadVisualsService{s.service}); err != nil {
		return nil, err
	}
	x.examineVoice()
	return &Examination{HeadID: head.ID, Name: head.Name, Mode: head.mode(), Findings: x.findings}, nil
}

// mode is the head's mode for people.
func (h *Head) mode() string {
	if h.VideoStreaming {
		return "streaming"
	}
	return "legacy"
}

// examiner gathers the findings about one head.
type examiner struct {
	core     *core
	head     *Head
	hooks    []Webhook
	findings []Finding
}

// find adds a finding. If the remedy names a method, an option or a field, use is
// its name.
func (x *examiner) find(severity Severity, code, subject, problem, remedy string, use ...string) {
	x.findings = append(x.findings, Finding{code, severity, subject, problem, remedy, strings.Join(use, "")})
}

// streamingSeverity is the severity of what prevents a head from streaming.
func (x *examiner) streamingSeverity() Severity {
	if x.head.VideoStreaming {
		return SeverityError
	}
	return SeverityNote
}

func (x *examiner) examineHead() {
	h := x.head
	if active, _ := rawjson.Value(h.Raw.Bytes(), "isActive"); string(active) == "false" { // the contract leaves its type open
		x.find(SeverityError, "inactive", "isActive", "The head is not active.", "Activate it where it was created; an update can't.")
	}
	if h.VideoStreaming && h.Splitter {
		x.find(SeverityError, "splitter", "splitter", "The splitter is on, which forces a streaming head back to legacy mode.",
			"Switch streaming on again with Heads.SetVideoStreaming, which turns the splitter off.", useSetVideoStreaming)
	}
	for _, field := range writableFields {
		if field.name == "publicUrl" { // examined as an access URL
			continue
		}
		if found := field.placeholder(encodeField(field.value(h)).raw); found != "" {
			x.find(SeverityError, "placeholder", field.name, fmt.Sprintf("It holds the placeholder %q.", found), "Set a real value.")
		}
	}
	x.examineLanguage("language", h.Language)
	x.examineLanguage("languageSpeechRecognition", h.LanguageSpeechRecognition)
}

func (x *examiner) examineLanguage(field, tag string) {
	if tag != "" && !check.IsPlaceholder(tag) && !languageTag.MatchString(tag) {
		x.find(SeverityWarning, "language", field, quote(tag)+" is not a language tag.", `Set a BCP 47 tag such as "en-US".`)
	}
}

func (x *examiner) examineAddress() {
	access, err := currentAddress("Heads.Examine", x.head)
	if err != nil {
		x.find(SeverityError, "access_url", "publicUrl", "It is not an access URL, so no one can be told where the head is.",
			"Look at the head where it was created; the service assigns this URL.")
		return
	}
	own, other := x.core.chatBase, x.core.streamBase
	if x.head.VideoStreaming {
		own, other = other, own
	}
	if access.Base == other && other != own {
		x.find(SeverityWarning, "access_url_mode", "publicUrl", fmt.Sprintf("The head is in %s mode, and its access URL is below the base URL of the other mode.", x.head.mode()),
			"Read the head again later; if it stays so, use Client.AccessURL.", useAccessURL)
	}
}

func (x *examiner) examineWebhooks() {
	switch {
	case x.head.EnableEvents && len(x.hooks) == 0:
		x.find(SeverityWarning, "delivery_without_webhook", "enableEvents", "Delivery is on, but no webhook is registered.", "Register one with Webhooks.Ensure.", useEnsure)
	case !x.head.EnableEvents && len(x.hooks) > 0:
		x.find(SeverityWarning, "webhook_without_delivery", "enableEvents", "Delivery is off, so no registered webhook receives an event.", "Turn delivery on with Webhooks.SetDelivery.", useSetDelivery)
	}
	registration.SortByAge(x.hooks, Webhook.age)
	var urls []string
	registered := map[string][]string{} // ids by URL
	for _, hook := range x.hooks {
		id := fmt.Sprintf("webhook %d", hook.ID)
		if u, err := url.Parse(hook.URL); err != nil || u.Scheme != "https" && !loopback.Is(u.Hostname()) {
			x.find(SeverityError, "webhook_http", id, "Its URL is not https, which the service demands.", "Register an https URL.")
		}
		if len(hook.Events()) == 0 {
			x.find(SeverityWarning, "webhook_without_event", id, "It subscribes to no event, so it never receives one.", "Turn an event on, or delete it.")
		}
		target := registration.URLKey(hook.URL)
		if registered[target] == nil {
			urls = append(urls, target)
		}
		registered[target] = append(registered[target], id)
	}
	for _, target := range urls {
		if ids := registered[target]; len(ids) > 1 {
			x.find(SeverityWarning, "webhook_duplicate", ids[0], fmt.Sprintf("Its URL is registered %d times, also by %s, so every event arrives more than once.", len(ids), strings.Join(ids[1:], ", ")),
				"Delete the others, or call Webhooks.Ensure with EnsureOptions.RemoveDuplicates.", useRemoveDuplicates)
		}
	}
}

func (x *examiner) examineTools() {
	tools := x.head.settings().Tools
	seen := map[string]int{}
	for _, tool := range tools {
		subject := "tool " + label(tool.Name)
		if err := tool.Validate(); err != nil {
			x.find(SeverityError, "tool_invalid", subject, "It is malformed, which can keep the head from loading: "+reasons(err)+".",
				"Correct it with ConversationSettings.PutTool, or remove it.", usePutTool)
		}
		for _, p := range tool.Parameters {
			x.examineType(subject+"."+label(p.Name), p)
		}
		if seen[tool.Name]++; seen[tool.Name] == 2 {
			x.find(SeverityError, "tool_duplicate", subject, "Two tools have this name.", "Remove one of them.")
		}
	}
	if len(tools) == 0 {
		return
	}
	if x.head.OperationMode != OperationModeOC {
		x.find(SeverityWarning, "tools_without_oc", "operationMode", fmt.Sprintf("The head has tools, but in operation mode %s it never calls one.", quote(string(x.head.OperationMode))),
			"Set operationMode to oc, or remove the tools.")
		return
	}
	x.examinePrompt(tools)
}

// examineType notes a type that the contract doesn't name. The service accepts it.
func (x *examiner) examineType(subject string, p ToolParameter) {
	given, _ := rawjson.Value(p.raw.plain(), "type")
	switch kind := rawjson.Kind(given); {
	case slices.Contains(toolTypes, p.Type), kind != "string" && kind != "null" && kind != "nothing": // Validate reports the latter
	case p.Type == "":
		x.find(SeverityNote, "parameter_untyped", subject, "It has no type, which the service accepts.",
			"Give it a type with ConversationSettings.PutTool when you change the tool.", usePutTool)
	default:
		problem := fmt.Sprintf("Its type %s is unknown, though the service may accept it", quote(p.Type))
		if meant := nearest.Name(p.Type, toolTypes); meant != "" {
			problem += "; did you mean " + meant + "?"
		} else {
			problem += "."
		}
		x.find(SeverityNote, "parameter_type", subject, problem, "Correct it with ConversationSettings.PutTool if it is a mistake.", usePutTool)
	}
}

// examinePrompt searches the prompt for the names of tools. If it finds a tool, it searches
// for the tool's parameters.
func (x *examiner) examinePrompt(tools []Tool) {
	prompt := ""
	if x.head.PromptConfig != nil {
		prompt = x.head.PromptConfig.SystemPrompt
	}
	for _, tool := range tools {
		for _, problem := range CheckPrompt(prompt, tool) {
			if problem.Parameter == "" {
				x.find(SeverityWarning, "tool_not_in_prompt", "tool "+label(tool.Name), "The prompt never names it.", "Say in the prompt when the head should call it.")
				break
			}
			x.find(SeverityWarning, "parameter_not_in_prompt", "tool "+label(tool.Name)+"."+label(problem.Parameter), "The prompt never names it.", "Say in the prompt where its value comes from.")
		}
	}
}

func (x *examiner) examineVisual(ctx context.Context, visuals *HeadVisualsService) error {
	id := x.head.HeadVisualID
	if id == "" {
		x.find(SeverityNote, "visual_unknown", "headVisualId", "The head has no visual that can be read.", "Look at the head where it was created.")
		return nil
	}
	visual, err := visuals.Get(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound):
		x.find(SeverityNote, "visual_unknown", "headVisualId", "The service does not find the head's visual.", "Look at the head where it was created.")
	case err != nil:
		return err
	case visual.Mode == "":
		x.find(SeverityNote, "visual_unknown", "headVisualId", "The answer for the head's visual shows no mode.", "Convert with ConvertOptions.AllowUnknownMode, which lets the service decide.", useAllowUnknownMode)
	case visual.Mode != VisualModeDefault:
		x.find(x.streamingSeverity(), "visual_mode", "headVisualId", fmt.Sprintf("The head's visual is in mode %s, which can't stream.", quote(string(visual.Mode))),
			"Create a new head with a visual in mode default.")
	}
	return nil
}

func (x *examiner) examineVoice() {
	h := x.head
	if !x.core.streamingProvider[strings.ToLower(h.TTSProvider)] {
		x.find(x.streamingSeverity(), "provider", "ttsProvider", fmt.Sprintf("The provider %s is not known to stream.", quote(h.TTSProvider)), "Set a voice of a provider that streams.")
	} else if strings.EqualFold(h.TTSProvider, "elevenlabs") && !recommendedForStreaming(h.TTSVoice) {
		x.find(SeverityNote, "voice_model", "ttsVoice", "The model in the voice's id is not one that is recommended for streaming.",
			"Take a voice whose id ends in flash_v2, flash_v2_5, turbo_v2 or turbo_v2_5.")
	}
}

// reasons are the sentences of InvalidErrors, joined, without their operation.
func reasons(err error) string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // it walks the tree itself
		var all []string
		for _, fault := range joined.Unwrap() {
			all = append(all, reasons(fault))
		}
		return strings.Join(all, "; ")
	}
	var fault *InvalidError
	if errors.As(err, &fault) {
		return fault.reason()
	}
	return err.Error()
}
