package main

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFlagsAreRefused(t *testing.T) {
	rows := []struct {
		name string
		args []string
		says string
	}{
		{"unknown flag", []string{"-port", "1"}, "-port"},
		{"argument without a flag", []string{"canary"}, "without a flag"},
		{"three dashes", []string{"---token=canary"}, "one or two dashes"},
		{"token with a space", []string{"-token", "a canary"}, "without a space"},
		{"token with a line break", []string{"-token", "canary\n"}, "visible ASCII"},
		{"token beyond ASCII", []string{"-token", "canary\u00e9"}, "visible ASCII"},
		{"token without a value", []string{"-token"}, "-token"},
		{"seed that is no number", []string{"-seed", "one"}, "-seed"},
		{"seed below zero", []string{"-seed", "-1"}, "-seed"},
		{"seed with more behind", []string{"-seed", "1 2"}, "-seed"},
		{"unknown style", []string{"-responses", "full"}, "empty, record or bool"},
		{"wait without unit", []string{"-retry", "1,2"}, "-retry"},
		{"wait below zero", []string{"-retry", "1s,-2s"}, "-retry"},
		{"no wait", []string{"-retry", ""}, "-retry"},
		{"unknown form of timestamps", []string{"-timestamps", "unix"}, "plain or iso"},
		{"rate below zero", []string{"-rate-limit", "-1"}, "-rate-limit"},
		{"rate that is no number", []string{"-rate-limit", "NaN"}, "-rate-limit"},
		{"no burst", []string{"-rate-limit", "1", "-burst", "0"}, "-burst"},
		{"burst without a rate", []string{"-burst", "5"}, "-rate-limit"},
		{"latency below zero", []string{"-latency", "-1s"}, "-latency"},
		{"latency without unit", []string{"-latency", "50"}, "-latency"},
		{"origin that is a host", []string{"-allow-origin", "localhost:3000"}, "a scheme and a host"},
		{"origin with a path", []string{"-allow-origin", "http://localhost:3000/"}, "a scheme and a host"},
		{"any origin", []string{"-allow-origin", "*"}, "a scheme and a host"},
		{"address without port", []string{"-addr", "127.0.0.1"}, "-addr"},
		{"seed file that is not there", []string{"-seed-file", filepath.Join(t.TempDir(), "none")}, "-seed-file"},
		{"token that can be worked out, for the network", []string{"-seed", "1", "-addr", "0.0.0.0:0", "-expose-to-network"}, "-token"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var out, log bytes.Buffer
			err := startAndStop(t, &out, &log, row.args...)
			require.ErrorContains(t, err, row.says)
			assert.NotContains(t, err.Error()+log.String(), "canary", "what may be a token is not shown")
			assert.Empty(t, out.String())
		})
	}
}

func TestRetryFlagSetsTheWaits(t *testing.T) {
	rows := map[string][]time.Duration{
		"":              {time.Second, 2 * time.Second, 4 * time.Second},
		"none":          nil,
		"0s":            {0},
		"500ms, 1m,2h ": {500 * time.Millisecond, time.Minute, 2 * time.Hour},
	}
	for given, want := range rows {
		t.Run(given, func(t *testing.T) {
			args := []string{"-retry", given}
			if given == "" {
				args = nil
			}
			s, err := parse(args, io.Discard)
			require.NoError(t, err)
			assert.Equal(t, want, s.retries)
		})
	}
}

func TestResponsesFlagSetsTheStyle(t *testing.T) {
	for style, want := range map[string]string{"empty": "^$", "bool": "^true$", "record": `"name":"Bea"`} {
		t.Run(style, func(t *testing.T) {
			p := start(t, "-responses", style)
			ans := p.api("PUT", "/head/update", `{"id":"`+p.Heads[0]+`","name":"Bea"}`)
			ans.ok(t, nil)
			assert.Regexp(t, want, ans.body)
		})
	}
}

func TestStrictOrderFlagStopsDeliveryToEarlyRegistrations(t *testing.T) {
	for _, args := range [][]string{nil, {"-strict-order"}} {
		p := start(t, args...)
		hook := `{"headId":"` + p.Heads[0] + `","webhookUrl":"` + receiver(t, accept) + `","endConversation":true}`
		p.api("POST", "/head-events", hook).ok(t, nil)
		p.api("PUT", "/head/"+p.Heads[0]+"/enable-events?enableEvents=true", "").ok(t, nil)
		p.api("POST", "/head-events", hook).ok(t, nil)
		session := p.session()
		p.control("POST", "sessions/"+session+"/close", "").ok(t, nil)
		p.deliveries("webhookId=2")
		if args == nil {
			assert.Len(t, p.deliveries("webhookId=1"), 1)
		} else {
			var list []deliveryView
			p.control("GET", "deliveries?webhookId=1", "").ok(t, &list)
			assert.Empty(t, list)
		}
		require.NoError(t, p.stop())
		assert.Contains(t, p.log.String(), "made before delivery was enabled; the real service may not deliver to it")
	}
}

func TestTokenFlagIsTheOneToken(t *testing.T) {
	p := start(t, "-token", "given")
	p.api("GET", "/head/"+p.Heads[0], "").ok(t, nil)
	p.Token = "other"
	p.api("GET", "/head/"+p.Heads[0], "").refused(t, 401, "Bearer")
}

func TestTimestampsFlagSetsTheForm(t *testing.T) {
	for form, want := range map[string]string{"": `^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$`, "plain": `^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$`, "iso": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`} {
		t.Run(form, func(t *testing.T) {
			args := []string{"-timestamps", form}
			if form == "" {
				args = nil
			}
			p := start(t, args...)
			p.hook(receiver(t, accept))
			p.control("POST", "sessions/"+p.session()+"/message", "").ok(t, nil)
			var body struct{ Timestamp string }
			require.NoError(t, json.Unmarshal([]byte(p.deliveries("")[0].Body), &body))
			assert.Regexp(t, want, body.Timestamp)
		})
	}
}

func TestRateLimitFlagLimitsTheOperationsAlone(t *testing.T) {
	p := start(t, "-rate-limit", "0.001", "-burst", "2")
	for range 2 {
		p.api("GET", "/head/"+p.Heads[0], "").ok(t, nil)
	}
	ans := p.api("GET", "/head/"+p.Heads[0], "")
	ans.refused(t, 429, "too many")
	assert.NotEmpty(t, ans.header.Get("Retry-After"))
	for range 5 {
		p.control("GET", "health", "").ok(t, nil)
	}
}

func TestLatencyFlagDelaysEveryAnswer(t *testing.T) {
	p := start(t, "-latency", "20ms")
	began := time.Now()
	p.api("GET", "/head/"+p.Heads[0], "").ok(t, nil)
	assert.GreaterOrEqual(t, time.Since(began), 20*time.Millisecond)
}
