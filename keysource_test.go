package heads

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSharedKeysServeEveryHead(t *testing.T) {
	source := SharedKeys("", testKeyA, "", testKeyB)
	for _, headID := range []string{testHeadA, testHeadB, ""} {
		keys, err := source.Keys(t.Context(), KeyHint{HeadID: headID})
		require.NoError(t, err)
		assert.Equal(t, []string{testKeyA, testKeyB}, keys)
	}
}

func TestHeadKeysBelongToTheirHead(t *testing.T) {
	source := HeadKeys(map[string][]string{testHeadA: {testKeyA, "second"}, testHeadB: {testKeyB}, "": {"of nobody"}})
	for headID, want := range map[string][]string{
		testHeadA: {testKeyA, "second"},
		testHeadB: {testKeyB},
		"":        nil,
		"unknown": nil,
	} {
		keys, err := source.Keys(t.Context(), KeyHint{HeadID: headID})
		require.NoError(t, err)
		assert.Equal(t, want, keys, headID)
	}
}

func TestStaticSourcesCopyTheirKeys(t *testing.T) {
	given := []string{testKeyA}
	byHead := map[string][]string{testHeadA: given}
	sources := []KeySource{SharedKeys(given...), HeadKeys(byHead)}
	given[0] = "changed"
	byHead[testHeadA] = nil
	for _, source := range sources {
		keys, err := source.Keys(context.Background(), KeyHint{HeadID: testHeadA})
		require.NoError(t, err)
		assert.Equal(t, []string{testKeyA}, keys)
		assert.Equal(t, len(keys), cap(keys), "nothing can be appended in place")
	}
}
