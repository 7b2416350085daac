package mask

import (
	"iter"
	"strings"
)

// finder finds many texts in one pass over another text. It is the automaton of Aho and
// Corasick: a tree of the wanted texts, in which each node knows the longest other one
// that ends the same. A nil finder finds nothing.
type finder struct {
	nodes []node
	first [256]int32 // the children of the root, nodes[0], by byte
}

// node is a beginning of a wanted text. Nodes are named by their index; 0 is none.
type node struct {
	child   int32 // the first one
	sibling int32 // the next child of the same node
	suffix  int32 // the longest beginning that is the end of this one
	found   int32 // the length of the longest wanted text that is the end of this one
	last    byte
}

// newFinder returns a finder of the texts that are not empty.
func newFinder(wanted []string) *finder {
	size := 0
	for _, text := range wanted {
		size += len(text)
	}
	if size == 0 {
		return nil
	}
	f := &finder{nodes: make([]node, 1, size+1)}
	for _, text := range wanted {
		f.add(text)
	}
	f.link()
	return f
}

func (f *finder) add(text string) {
	at := int32(0)
	for i := range len(text) {
		next := f.child(at, text[i])
		if next == 0 {
			next = int32(len(f.nodes))
			f.nodes = append(f.nodes, node{last: text[i]})
			if at == 0 {
				f.first[text[i]] = next
			} else {
				f.nodes[next].sibling, f.nodes[at].child = f.nodes[at].child, next
			}
		}
		at = next
	}
	f.nodes[at].found = int32(len(text))
}

// link sets suffix and found, for short beginnings before longer ones.
func (f *finder) link() {
	var queue []int32
	for _, child := range f.first {
		if child != 0 {
			queue = append(queue, child)
		}
	}
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		for child := f.nodes[at].child; child != 0; child = f.nodes[child].sibling {
			suffix := f.step(f.nodes[at].suffix, f.nodes[child].last)
			f.nodes[child].suffix = suffix
			if f.nodes[child].found == 0 {
				f.nodes[child].found = f.nodes[suffix].found
			}
			queue = append(queue, child)
		}
	}
}

func (f *finder) child(at int32, c byte) int32 {
	if at == 0 {
		return f.first[c]
	}
	next := f.nodes[at].child
	for next != 0 && f.nodes[next].last != c {
		next = f.nodes[next].sibling
	}
	return next
}

// step returns the longest beginning that ends with what at ends with and c.
func (f *finder) step(at int32, c byte) int32 {
	for {
		if next := f.child(at, c); next != 0 || at == 0 {
			return next
		}
		at = f.nodes[at].suffix
	}
}

// matches yields where a wanted text is: for each place where one ends, the longest.
func (f *finder) matches(text string) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		at := int32(0)
		for i := range len(text) {
			at = f.step(at, text[i])
			if found := int(f.nodes[at].found); found > 0 && !yield(i+1-found, i+1) {
				return
			}
		}
	}
}

// replace replaces each wanted text by [redacted], and several that overlap by one.
func (f *finder) replace(text string) string {
	type span struct{ start, end int }
	var spans []span // do not overlap, in order
	for start, end := range f.matches(text) {
		for n := len(spans); n > 0 && start < spans[n-1].end; n-- {
			start, spans = min(start, spans[n-1].start), spans[:n-1]
		}
		spans = append(spans, span{start, end})
	}
	if spans == nil {
		return text
	}
	var b strings.Builder
	kept := 0
	for _, s := range spans {
		b.WriteString(text[kept:s.start] + Redacted)
		kept = s.end
	}
	return b.String() + text[kept:]
}
