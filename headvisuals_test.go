package heads

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHeadVisualReadsTheModeWhereItIsText(t *testing.T) {
	tests := []struct {
		name, answer string
		id           string
		mode         VisualMode
	}{
		{"default", `{"id":"v-1","mode":"default"}`, "v-1", VisualModeDefault},
		{"two loops", `{"id":"v-1","mode":"two_loops"}`, "v-1", VisualModeTwoLoops},
		{"another mode", `{"id":"v-1","mode":"two_loops_streaming"}`, "v-1", "two_loops_streaming"},
		{"no mode", `{"id":"v-1"}`, "v-1", ""},
		{"a mode of null", `{"id":"v-1","mode":null}`, "v-1", ""},
		{"a mode of another type", `{"id":"v-1","mode":{"name":"default"}}`, "v-1", ""},
		{"an id in another case", `{"id":"V-1","mode":"default"}`, "V-1", VisualModeDefault},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			service := newFakeAPI(t, map[string]string{"GET /head_visual/v-1": tt.answer})
			visual, err := service.HeadVisuals.Get(t.Context(), "v-1")
			require.NoError(t, err)
			assert.Equal(t, tt.id, visual.ID)
			assert.Equal(t, tt.mode, visual.Mode)
			assert.Equal(t, tt.answer, string(visual.Raw.Bytes()))
		})
	}
}

func TestHeadVisualIDMayBeANumber(t *testing.T) {
	service := newFakeAPI(t, map[string]string{"GET /head_visual/17": `{"id":17,"mode":["default"]}`})
	visual, err := service.HeadVisuals.Get(t.Context(), "17")
	require.NoError(t, err)
	assert.Equal(t, "17", visual.ID)
	assert.Empty(t, visual.Mode)
}

func TestHeadVisualIDMustBeASegmentOfAPath(t *testing.T) {
	service := newFakeAPI(t, nil)
	for _, id := range []string{"", " ", "\t\n", ".", ".."} {
		_, err := service.HeadVisuals.Get(t.Context(), id)
		assert.Equal(t, []string{"head visual id"}, invalidFields(t, err), "%q", id)
	}
	assert.Empty(t, service.since())
}

func TestPrintingAHeadVisualShowsNoDocument(t *testing.T) {
	service := newFakeAPI(t, map[string]string{"GET /head_visual/v": `{"id":"v","mode":"default","note":"canary"}`})
	visual, err := service.HeadVisuals.Get(t.Context(), "v")
	require.NoError(t, err)
	assertHides(t, *visual, "canary")
	assertHides(t, visual, "canary")
}
