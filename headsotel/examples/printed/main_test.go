package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSpansAndMetricsArePrinted(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, nil))
	for _, want := range []string{
		"convert one head (internal)\n  GET /head/{id} (client) http.request.method=GET",
		"\nheads.delivery (consumer) heads.delivery.outcome=handled heads.event.type=start_conversation\n  store the event (internal)\n",
		"\nheads.tool find_order (server) heads.tool.name=find_order heads.tool.outcome=answered\n",
		"\nheads.delivery.count in {delivery}\n  1 heads.delivery.outcome=handled",
		"\nhttp.client.request.duration in s\n",
	} {
		assert.Contains(t, out.String(), want)
	}
}
