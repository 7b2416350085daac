package heads_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
)

func TestEnsureWithKeepDeliveryLeavesDeliveryAsItIs(t *testing.T) {
	w := newWorld(t)
	spec := w.spec()
	hook, err := w.client().Webhooks.Ensure(t.Context(), spec, heads.EnsureOptions{KeepDelivery: true})
	require.NoError(t, err)
	assert.NotEmpty(t, hook.SharedKey)
	for _, r := range w.Requests() {
		assert.NotContains(t, r.Path, "enable-events")
	}
}

func TestWebhookSpecValidateReturnsAllFaults(t *testing.T) {
	assert.NoError(t, newWorld(t).spec().Validate())
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
		err := heads.NewHeadUpdate().Set(name, "x").Validate()
		if err != nil && strings.Contains(err.Error(), "can't be changed by an update") {
			assert.NotContains(t, writable, name)
		} else {
			assert.Contains(t, writable, name)
		}
	}
}
