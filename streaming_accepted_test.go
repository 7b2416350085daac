package heads_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

func TestConversionReportsWhetherItsSwitchWasAccepted(t *testing.T) {
	const route = "/head/{headId}/video-streaming"
	for name, tt := range map[string]struct {
		fault    headstest.Fault
		accepted bool
		waits    bool
	}{
		"accepted, without effect":     {headstest.Fault{Method: http.MethodPut, Route: route, Status: 200}, true, true},
		"answered with its access URL": {headstest.Fault{Method: http.MethodPut, Route: route, Status: 200, Body: `"` + streamURL + `"`}, true, true},
		"answered by a proxy":          {headstest.Fault{Method: http.MethodPut, Route: route, Status: 200, Body: "<html>We are back soon</html>"}, false, true},
		"answered with a message":      {headstest.Fault{Method: http.MethodPut, Route: route, Status: 200, Body: `{"message":"We are back soon"}`}, false, true},
		"answered with false":          {headstest.Fault{Method: http.MethodPut, Route: route, Status: 200, Body: "false"}, false, true},
		"refused":                      {headstest.Fault{Method: http.MethodPut, Route: route, Status: 409}, false, false},
		"lost, without effect":         {headstest.Fault{Method: http.MethodPut, Route: route, Status: 500}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := headstest.NewEmulator()
				defer e.Close()
				e.Inject(tt.fault)
				waited := 0
				_, err := e.Client().Heads.ConvertToStreaming(t.Context(), e.AddHead(headstest.Head{Fields: map[string]any{"publicUrl": legacyURL}}), heads.ConvertOptions{ConfirmTimeout: 3 * time.Second, OnStep: func(step heads.ConversionStep) {
					if step.Waiting {
						waited++
					}
					assert.Equal(t, step.Waiting && tt.accepted, step.Accepted)
				}})
				var failure *heads.ConversionError
				require.ErrorAs(t, err, &failure)
				assert.Equal(t, tt.accepted, failure.Accepted)
				if !tt.accepted {
					assert.NotContains(t, err.Error(), "accepted")
				}
				assert.Equal(t, tt.waits, waited > 0)
			})
		})
	}
}
