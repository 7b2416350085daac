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
	for _, row := range []struct {
		name, one, other string
		same             bool
	}{
		{"the same", "https://a.example.com/in", "https://a.example.com/in", true},
		{"case of the host", "https://A.Example.COM/in", "https://a.example.com/in", true},
		{"case of the scheme", "https://a.example.com/in", "HTTPS://a.example.com/in", true},
		{"default port registered", "https://a.example.com:443/in", "https://a.example.com/in", true},
		{"default port asked for", "https://a.example.com/in", "https://a.example.com:443/in", true},
		{"default port of http", "http://localhost/in", "http://localhost:80/in", true},
		{"slash at the end registered", "https://a.example.com/in/", "https://a.example.com/in", true},
		{"slash at the end asked for", "https://a.example.com/in", "https://a.example.com/in/", true},
		{"slash as the whole path", "https://a.example.com", "https://a.example.com/", true},
		{"slash before a query", "https://a.example.com/in/?a=1", "https://a.example.com/in?a=1", true},
		{"fragment, which is never sent", "https://a.example.com/in#top", "https://a.example.com/in", true},
		{"address of IP version 6", "https://[2001:DB8::1]:443/in", "https://[2001:db8::1]/in", true},
		{"another port", "https://a.example.com:8443/in", "https://a.example.com/in", false},
		{"default port of another scheme", "https://a.example.com:80/in", "https://a.example.com/in", false},
		{"another scheme", "http://localhost/in", "https://localhost/in", false},
		{"another scheme, the same port", "http://localhost:443/in", "https://localhost/in", false},
		{"port that could be part of the address", "https://[2001:db8::1:8443]/in", "https://[2001:db8::1]:8443/in", false},
		{"another host", "https://b.example.com/in", "https://a.example.com/in", false},
		{"another path", "https://a.example.com/in/a", "https://a.example.com/in", false},
		{"two slashes at the end", "https://a.example.com/in//", "https://a.example.com/in", false},
		{"escaped slash at the end", "https://a.example.com/in%2F", "https://a.example.com/in", false},
		{"escaped slash inside", "https://a.example.com/in%2Fa", "https://a.example.com/in/a", false},
		{"case of the path", "https://a.example.com/In", "https://a.example.com/in", false},
		{"another query", "https://a.example.com/in?a=1", "https://a.example.com/in?a=2", false},
		{"no query", "https://a.example.com/in?a=1", "https://a.example.com/in", false},
		{"case of the query", "https://a.example.com/in?a=b", "https://a.example.com/in?a=B", false},
		{"slash at the end of the query", "https://a.example.com/in?a=b/", "https://a.example.com/in?a=b", false},
		{"user name", "https://me@a.example.com/in", "https://a.example.com/in", false},
	} {
		assert.Equal(t, row.same, registration.URLKey(row.one) == registration.URLKey(row.other), row.name)
	}
}
