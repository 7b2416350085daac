package headstest_test

import (
	"errors"
	"net/http"
	"testing"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClientReachesTheServer(t *testing.T) {
	srv := headstest.NewServer(headstest.WithLogger(nil))
	defer srv.Close()
	id := srv.AddHead(headstest.Head{Name: "Ada"})
	h, err := srv.Client().Heads.Get(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, "Ada", h.Name)
}

func TestClientPanicsOnARefusedOption(t *testing.T) {
	srv := headstest.NewServer()
	defer srv.Close()
	twice := heads.WithTokenSource(nil) // a token is already set
	assert.Panics(t, func() { srv.Client(twice) })
}

func TestClosedServerAnswersNothing(t *testing.T) {
	srv := headstest.NewServer()
	srv.Close()
	resp, err := (&http.Client{Transport: &http.Transport{}}).Get(srv.URL)
	if err == nil {
		err = errors.Join(errors.New("answered"), resp.Body.Close())
	}
	assert.NotContains(t, err.Error(), "answered")
}
