package sqlite

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// mark is a file next to the database that contains the highest acknowledged sequence. It reveals
// that the database was replaced by an older one. It may be lost in a power failure, so it is not
// synced.
type mark struct {
	mu   sync.Mutex
	file *os.File
	high int64
}

const markLength = 20

func readMark(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fileError(err)
	}
	high, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil && len(text) > 0 {
		return 0, &engine.Error{Kind: engine.Damaged, Text: fmt.Sprintf("sqlite: %s holds no number: remove it to go on with the events that are left", path)}
	}
	return high, nil
}

func openMark(path string, high int64) (*mark, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fileError(err)
	}
	return &mark{file: f, high: high}, nil
}

// raise writes the sequence, unless this process or another has written a higher one. It ignores
// errors of the file: then an older database may go unnoticed.
func (m *mark) raise(sequence int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if sequence <= m.high {
		return
	}
	m.high = sequence
	var text [markLength]byte
	n, _ := m.file.ReadAt(text[:], 0)
	if other, err := strconv.ParseInt(strings.TrimSpace(string(text[:n])), 10, 64); err == nil && other >= sequence {
		m.high = other
		return
	}
	_, _ = m.file.WriteAt(fmt.Appendf(text[:0], "%*d\n", markLength-1, sequence), 0)
}

func (m *mark) close() { _ = m.file.Close() }
