package heads_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
)

func TestListReturnsTheOldestFirst(t *testing.T) {
	const id = "3fa85f64-5717-4562-b3fc-2c963f66afa6"
	for name, tt := range map[string]struct {
		created [3]string
		order   []int64
	}{
		"by time":                        {[3]string{"2026-01-03T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"}, []int64{2, 3, 1}},
		"by id if a time is unknown":     {[3]string{"2026-01-03T00:00:00Z", "", "2026-01-02T00:00:00Z"}, []int64{1, 2, 3}},
		"by id where times are the same": {[3]string{"2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"}, []int64{1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			var records []string
			for i := range 3 {
				n := (i + 2) % 3 // not in their order
				records = append(records, fmt.Sprintf(`{"id":%d,"headId":%q,"createdAt":%q}`, n+1, id, tt.created[n]))
			}
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "["+strings.Join(records, ",")+"]")
			}))
			defer srv.Close()
			c, err := heads.New(srv.URL, "token")
			require.NoError(t, err)
			hooks, err := c.Webhooks.List(context.Background(), id)
			require.NoError(t, err)
			var order []int64
			for _, w := range hooks {
				order = append(order, w.ID)
			}
			assert.Equal(t, tt.order, order)
		})
	}
}

func TestEnsureWithKeepDeliveryLeavesDeliveryAsItIs(t *testing.T) {
	w := newHookWorld(t)
	spec := w.spec()
	spec.KeepDelivery = true
	hook, err := w.client().Webhooks.Ensure(t.Context(), spec)
	require.NoError(t, err)
	assert.NotEmpty(t, hook.SharedKey)
	for _, r := range w.Requests() {
		assert.NotContains(t, r.Path, "enable-events")
	}
}

func TestWebhookSpecValidateReturnsAllFaults(t *testing.T) {
	assert.NoError(t, newHookWorld(t).spec().Validate())
	err := heads.WebhookSpec{HeadID: "li-1", URL: "http://hooks.example.com", Events: []heads.EventType{"later"}}.Validate()
	require.ErrorIs(t, err, heads.ErrInvalid)
	for _, want := range []string{"li-1", "not https", "later"} {
		assert.ErrorContains(t, err, want)
	}
}

func TestEveryWritableFieldCanBeSetAndNoOtherIsNamed(t *testing.T) {
	var fields map[string]json.RawMessage
	document, err := json.Marshal(heads.Head{})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(document, &fields))
	writable := heads.WritableFields()
	assert.Len(t, writable, 19)
	for name := range fields {
		err := heads.NewHeadUpdate("3fa85f64-5717-4562-b3fc-2c963f66afa6").Set(name, "x").Validate()
		if err != nil && strings.Contains(err.Error(), "can't be changed by an update") {
			assert.NotContains(t, writable, name)
		} else {
			assert.Contains(t, writable, name)
		}
	}
}
