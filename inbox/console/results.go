package console

import (
	"crypto/rand"
	"sync"
)

// results are the messages of changes that this page made, for the page that is shown after it. A
// message in the address could be written by anyone.
type results struct {
	mu    sync.Mutex
	texts map[string]string
	order []string
}

const maxResults = 100

func (r *results) add(text string) (key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.texts == nil {
		r.texts = map[string]string{}
	}
	if len(r.order) == maxResults {
		delete(r.texts, r.order[0])
		r.order = r.order[1:]
	}
	key = rand.Text()
	r.texts[key] = text
	r.order = append(r.order, key)
	return key
}

func (r *results) get(key string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.texts[key]
}
