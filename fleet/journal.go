package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	heads "github.com/headsapi/heads-go"
)

// journalHeader is the first line of a journal.
const journalHeader = `{"format":"heads-fleet-journal","version":1}` + "\n"

// maxHeader is how much of a file is looked at to recognize its format.
const maxHeader = 4 << 10

// ErrJournalInUse is returned by OpenJournal for a journal that is open, in this
// process or another one.
var ErrJournalInUse = errors.New("the journal is in use")

var errJournalClosed = errors.New("the journal is closed")

// Journal is a file that outlives the process: it has the id and the access URL
// of every head before its mode is switched, without a key. It may be kept for
// later runs, and grows by one line for every switch.
//
// A Journal is safe for concurrent use.
type Journal struct {
	path    string
	dropped int

	mu      sync.Mutex
	file    *os.File
	write   func([]byte) (int, error) // of file; replaced in tests
	end     int64                     // of what is whole
	records map[journalKey]journalRecord
	err     error // after a record could not be written, or after Close
}

// journalRecord is one line after the header: a switch that is about to be sent,
// or what was found out about it since.
type journalRecord struct {
	HeadID    string     `json:"head_id"`
	Label     string     `json:"label,omitempty"`
	Streaming bool       `json:"streaming"` // the mode to which the head is switched
	Old       oldAddress `json:"old"`
	At        time.Time  `json:"at"`

	// Accepted is set while the service is known to have accepted the switch,
	// and the head was not seen in that mode.
	Accepted bool `json:"accepted,omitempty"`
}

// oldAddress is an access URL without its key.
type oldAddress struct {
	Base         string `json:"base"`
	OrgPublicID  string `json:"org_public_id"`
	HeadPublicID string `json:"head_public_id"`
}

// journalKey is what a later record replaces an earlier one of.
type journalKey struct {
	headID    string // lower case
	streaming bool
}

// OpenJournal opens the journal at path, or creates it with mode 0600. One
// process at a time can have it open: for a journal that is open already,
// OpenJournal returns ErrJournalInUse. It returns an InvalidError for a file of
// another format, and leaves that as it is.
//
// A last line that is not whole, as a kill in the middle of writing leaves it,
// is removed; Dropped returns its size. The switch that it was for had not been
// sent.
func OpenJournal(path string) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("fleet: open journal: %w", err)
	}
	j := &Journal{path: path, file: file, write: file.Write, records: map[journalKey]journalRecord{}}
	if err := j.open(); err != nil {
		_ = file.Close()
		return nil, err
	}
	return j, nil
}

// Dropped returns the size in bytes of a cut last line, which OpenJournal
// removed.
func (j *Journal) Dropped() int { return j.dropped }

// Close closes the file, which another process can open then. Closing a journal
// twice is no error.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	if j.err == nil {
		j.err = fmt.Errorf("fleet: journal %s: %w", j.path, errJournalClosed)
	}
	return err
}

func (j *Journal) open() error {
	if info, err := j.file.Stat(); err != nil || !info.Mode().IsRegular() {
		return j.invalid("is not a regular file; give another path")
	}
	if err := lockFile(j.file); err != nil {
		return fmt.Errorf("fleet: open journal %s: %w", j.path, err)
	}
	content, err := io.ReadAll(io.LimitReader(j.file, maxHeader))
	if err != nil {
		return fmt.Errorf("fleet: open journal: %w", err)
	}
	header, _, whole := bytes.Cut(content, []byte{'\n'})
	switch {
	case whole && string(header)+"\n" == journalHeader:
	case !whole && strings.HasPrefix(journalHeader, string(content)):
		return j.begin(len(content))
	default:
		return j.invalid("is not a journal of this version of the library; give another path, or move the file away")
	}
	rest, err := io.ReadAll(j.file)
	if err != nil {
		return fmt.Errorf("fleet: open journal: %w", err)
	}
	return j.load(append(content, rest...))
}

// begin writes the header of a new journal, or that of one of which only a part
// of the header was written.
func (j *Journal) begin(cut int) error {
	j.dropped = cut
	err := errors.Join(j.file.Truncate(0), j.seek(0))
	if err == nil {
		_, err = j.file.WriteString(journalHeader)
	}
	if err == nil {
		err = errors.Join(j.file.Sync(), syncDir(filepath.Dir(j.path)))
	}
	if err != nil {
		return fmt.Errorf("fleet: begin journal: %w", err)
	}
	j.end = int64(len(journalHeader))
	return nil
}

// load reads the records, and removes what follows the last whole line.
func (j *Journal) load(content []byte) error {
	end := bytes.LastIndexByte(content, '\n') + 1
	number := 1
	for line := range bytes.Lines(content[len(journalHeader):end]) {
		number++
		var r journalRecord
		if json.Unmarshal(line, &r) != nil || r.HeadID == "" || r.Old.Base == "" {
			return j.invalid(fmt.Sprintf("has a line %d that is no record; give another path, or repair the line", number))
		}
		j.keep(r)
	}
	j.dropped = len(content) - end
	j.end = int64(end)
	if j.dropped > 0 {
		if err := errors.Join(j.file.Truncate(j.end), j.file.Sync()); err != nil {
			return fmt.Errorf("fleet: open journal: %w", err)
		}
	}
	return j.seek(j.end)
}

func (j *Journal) invalid(reason string) error {
	return &heads.InvalidError{Operation: "fleet.OpenJournal", Field: "journal " + j.path, Reason: reason}
}

func (j *Journal) seek(offset int64) error {
	_, err := j.file.Seek(offset, io.SeekStart)
	return err
}

// find returns the record of the last switch of a head to a mode. A nil journal
// has none.
func (j *Journal) find(headID string, streaming bool) (journalRecord, bool) {
	if j == nil {
		return journalRecord{}, false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	r, ok := j.records[journalRecord{HeadID: headID, Streaming: streaming}.key()]
	return r, ok
}

// setAccepted notes that the service has accepted a switch, or that the head was
// seen in its new mode.
func (j *Journal) setAccepted(headID string, streaming, accepted bool) error {
	r, ok := j.find(headID, streaming)
	if !ok || r.Accepted == accepted {
		return nil
	}
	r.Accepted = accepted
	return j.add(r)
}

// add has a record on disk when it returns nil. After an error it is of no
// further use, since what was written is not known to be whole.
func (j *Journal) add(r journalRecord) error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return j.err
	}
	if known, ok := j.records[r.key()]; ok && known.Old == r.Old && known.Accepted == r.Accepted {
		return nil // it is on disk
	}
	line, err := json.Marshal(r)
	if err == nil {
		err = j.append(append(line, '\n'))
	}
	if err != nil {
		j.err = fmt.Errorf("fleet: write journal: %w", err)
		return j.err
	}
	j.keep(r)
	return nil
}

// keep takes a record in place of an earlier one. A switch to one mode ends the
// wait for a switch to the other.
func (j *Journal) keep(r journalRecord) {
	j.records[r.key()] = r
	opposite := r
	opposite.Streaming = !r.Streaming
	if other, ok := j.records[opposite.key()]; ok && other.Accepted {
		other.Accepted = false
		j.records[other.key()] = other
	}
}

// append writes a line whole, or leaves the file as it was.
func (j *Journal) append(line []byte) error {
	_, err := j.write(line)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		_ = j.file.Truncate(j.end) // else the next OpenJournal drops a part of a line
		return err
	}
	j.end += int64(len(line))
	return nil
}

// broken returns why records can't be written any more, or nil.
func (j *Journal) broken() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

func (r journalRecord) key() journalKey { return journalKey{strings.ToLower(r.HeadID), r.Streaming} }

func keyless(a heads.AccessURL) oldAddress {
	return oldAddress{Base: a.Base, OrgPublicID: a.OrgPublicID, HeadPublicID: a.HeadPublicID}
}

// withKey is the access URL, which had the same key as that of the head now.
func (a oldAddress) withKey(key heads.Secret) heads.AccessURL {
	return heads.AccessURL{Base: a.Base, OrgPublicID: a.OrgPublicID, HeadPublicID: a.HeadPublicID, APIKey: key}
}

// syncDir makes a new file's name last, where a directory can be synced.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if err := dir.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}
