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

// maxHeader is how much of a file is read to recognize its format.
const maxHeader = 4 << 10

// ErrJournalInUse is returned by OpenJournal if the journal is already open, in this
// process or another one.
var ErrJournalInUse = errors.New("the journal is in use")

var errJournalClosed = errors.New("the journal is closed")

// Journal is a file that records the id and the access URL of every head before its
// mode is switched, without the key. Later runs can use the same journal. It grows
// by one line for every switch.
//
// A Journal is safe for concurrent use.
type Journal struct {
	path    string
	dropped int

	mu      sync.Mutex
	file    *os.File
	write   func([]byte) (int, error) // of file; replaced in tests
	end     int64                     // of the last whole line
	records map[journalKey]journalRecord
	err     error // set if a record could not be written, and by Close
}

// journalRecord is one line after the header: a switch that is about to be sent, or
// its outcome.
type journalRecord struct {
	HeadID    string     `json:"head_id"`
	Label     string     `json:"label,omitempty"`
	Streaming bool       `json:"streaming"` // the mode to which the head is switched
	Old       oldAddress `json:"old"`
	At        time.Time  `json:"at"`

	// Accepted is set if the service has accepted the switch, but no read has
	// shown the head in that mode yet.
	Accepted bool `json:"accepted,omitempty"`
}

// oldAddress is an access URL without its key.
type oldAddress struct {
	Base         string `json:"base"`
	OrgPublicID  string `json:"org_public_id"`
	HeadPublicID string `json:"head_public_id"`
}

// journalKey identifies a switch. A later record of a key replaces an earlier one.
type journalKey struct {
	headID    string // lower case
	streaming bool
}

// OpenJournal opens the journal at path, or creates it with mode 0600. If the
// journal is already open, here or in another process, OpenJournal returns
// ErrJournalInUse. If the file has another format, OpenJournal returns an
// InvalidError and does not change the file.
//
// OpenJournal removes an incomplete last line, which remains if the process was
// killed while it wrote. Dropped returns the size of that line. Its switch was not
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

// Dropped returns the size in bytes of the incomplete last line that OpenJournal
// removed.
func (j *Journal) Dropped() int { return j.dropped }

// Close closes the file. Another process can open it then. A second call does
// nothing.
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

// begin writes the header of a new journal, or of one with an incomplete header.
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

// load reads the records and removes what follows the last whole line.
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

// find returns the record of the last switch of a head to a mode. A nil journal has
// none.
func (j *Journal) find(headID string, streaming bool) (journalRecord, bool) {
	if j == nil {
		return journalRecord{}, false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	r, ok := j.records[journalRecord{HeadID: headID, Streaming: streaming}.key()]
	return r, ok
}

// setAccepted records that the service has accepted a switch, or that a read has
// shown the head in its new mode.
func (j *Journal) setAccepted(headID string, streaming, accepted bool) error {
	r, ok := j.find(headID, streaming)
	if !ok || r.Accepted == accepted {
		return nil
	}
	r.Accepted = accepted
	return j.add(r)
}

// add writes a record. When it returns nil, the record is on disk. After an error,
// add always fails, since the record may be incomplete.
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

// keep replaces the earlier record of a key. A switch to one mode ends the wait for
// a switch to the other.
func (j *Journal) keep(r journalRecord) {
	j.records[r.key()] = r
	opposite := r
	opposite.Streaming = !r.Streaming
	if other, ok := j.records[opposite.key()]; ok && other.Accepted {
		other.Accepted = false
		j.records[other.key()] = other
	}
}

// append writes a whole line, or restores the file.
func (j *Journal) append(line []byte) error {
	_, err := j.write(line)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		_ = j.file.Truncate(j.end) // if that fails, the next OpenJournal drops the incomplete line
		return err
	}
	j.end += int64(len(line))
	return nil
}

// broken returns why no more records can be written, or nil.
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

// withKey returns the old access URL with the head's key, which has not changed.
func (a oldAddress) withKey(key heads.Secret) heads.AccessURL {
	return heads.AccessURL{Base: a.Base, OrgPublicID: a.OrgPublicID, HeadPublicID: a.HeadPublicID, APIKey: key}
}

// syncDir syncs the directory of a new file, on systems that can.
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
