package registration_test

import (
	"testing"
	"time"

	"github.com/headsapi/heads-go/internal/registration"
	"github.com/stretchr/testify/assert"
)

func TestSortByAgePutsTheOldestFirst(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	for name, tt := range map[string]struct {
		created map[int64]time.Time
		order   []int64
	}{
		"by time":                        {map[int64]time.Time{1: day(3), 2: day(1), 3: day(2)}, []int64{2, 3, 1}},
		"by id if a time is unknown":     {map[int64]time.Time{1: day(3), 2: {}, 3: day(2)}, []int64{1, 2, 3}},
		"by id where times are the same": {map[int64]time.Time{1: day(1), 2: day(1), 3: day(1)}, []int64{1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			ids := []int64{3, 1, 2}
			registration.SortByAge(ids, func(id int64) (time.Time, int64) { return tt.created[id], id })
			assert.Equal(t, tt.order, ids)
		})
	}
}

func TestURLKeyIsTheSameForTheSameURL(t *testing.T) {
	const in = "https://a.example.com/in"
	for other, one := range map[string]string{
		in: in, "https://A.Example.COM/in": in, "HTTPS://a.example.com/in": in, in + "/": in, in + "#top": in, in + "/?a=1": in + "?a=1",
		"https://a.example.com:443/in": in, "http://localhost:80/in": "http://localhost/in", "https://a.example.com/": "https://a.example.com", "https://[2001:DB8::1]:443/in": "https://[2001:db8::1]/in",
	} {
		assert.Equal(t, registration.URLKey(one), registration.URLKey(other))
	}
	for other, one := range map[string]string{
		"https://a.example.com:8443/in": in, "https://a.example.com:80/in": in, "http://localhost/in": "https://localhost/in",
		"http://localhost:443/in":       "https://localhost/in",
		"https://[2001:db8::1:8443]/in": "https://[2001:db8::1]:8443/in", // which could be part of the address
		"https://b.example.com/in":      in, in + "/a": in, in + "//": in, in + "%2F": in, in + "%2Fa": in + "/a", "https://a.example.com/In": in,
		in + "?a=1": in, in + "?a=2": in + "?a=1", in + "?a=B": in + "?a=b", in + "?a=b/": in + "?a=b", "https://me@a.example.com/in": in,
	} {
		assert.NotEqual(t, registration.URLKey(one), registration.URLKey(other))
	}
}
