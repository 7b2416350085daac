package scenario

import (
	"strconv"
	"strings"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/headstest"
)

// anyRequest stands for all requests or events.
const anyRequest = "any"

// readFault reads a fault of requests or of deliveries; the other one is nil.
func readFault(v *yamltext.Value) (*headstest.Fault, *headstest.DeliveryFault) {
	times := numberOf(v.Get("times"), 1)
	if v.Get("times").String() == "all" {
		times = 0
	}
	if request := v.Get("request"); request != nil {
		share, _ := strconv.ParseFloat(v.Get("share").AsText(), 64)
		fault := &headstest.Fault{
			Times: times, Status: numberOf(v.Get("status"), 0), Body: bodyOf(v.Get("body")), RetryAfter: durationOf(v.Get("retry_after"), 0), Latency: durationOf(v.Get("latency"), 0),
			Cut:     map[string]headstest.CutPoint{"before": headstest.CutBefore, "after": headstest.CutAfter}[v.Get("cut").String()],
			CutBody: v.Get("cut_body").IsTrue(), After: v.Get("after_effect").IsTrue(), Share: share,
		}
		if request.Text != anyRequest {
			fault.Method, fault.Route, _ = strings.Cut(request.Text, " ")
		}
		return fault, nil
	}
	fault := &headstest.DeliveryFault{
		Times: times, WebhookID: int64(numberOf(v.Get("webhook_id"), 0)), Drop: v.Get("drop").IsTrue(), Duplicate: v.Get("duplicate").IsTrue(), Reorder: v.Get("reorder").IsTrue(),
		Delay: durationOf(v.Get("delay"), 0), CorruptSignature: v.Get("corrupt_signature").IsTrue(), Age: durationOf(v.Get("age"), 0),
		Encoding: map[string]headstest.SignatureEncoding{"hex": headstest.SignatureHex, "base64": headstest.SignatureBase64}[v.Get("encoding").String()],
	}
	if event := v.Get("event").Text; event != anyRequest && !hasReference(event) {
		fault.Event = heads.EventType(event)
	}
	return nil, fault
}

// bodyOf returns a text, or JSON for anything else.
func bodyOf(v *yamltext.Value) string {
	if !v.IsGiven() {
		return ""
	}
	return v.AsText()
}
