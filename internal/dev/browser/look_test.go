package browser

import (
	"strings"
	"testing"
)

func TestLook(t *testing.T) {
	hook := receiver(t, 500, 503)
	p := start(t, "-retry", "300ms,600ms", "-seed-file", crowd(t, hook, 50))
	b := open(t, p.ConsoleURL)
	p.talk(hook)
	for _, place := range []string{"conversation?open=d2", "configuration", "deliveries?open=d2", "tools", "requests?open=r5", "faults"} {
		b.goTo("heads/" + ada + "/" + place)
		for _, w := range []int64{1400, 420} {
			b.view(w, map[int64]string{1400: "dark", 420: "light"}[w])
			b.get("main", "")
			b.get("heading", "Ada")
			b.shot("look-" + strings.Split(place, "?")[0] + map[int64]string{1400: "", 420: "-narrow"}[w])
		}
	}
}
