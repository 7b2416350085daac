package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/headsapi/heads-go/internal/durable"
)

// ErrJournalInUse is returned by OpenJournal if the journal is already open, in this process or
// another one.
var ErrJournalInUse = errors.New("the journal is in use")

var errJournalClosed = errors.New("the journal is closed")

// Journal is a file that records the id and the access URL, without the key, of every head before
// its mode is switched. Later runs can use the same journal. Each switch adds a line.
//
// A journal belongs to one service. Its first line names the service's base URL, and every line
// after it has a checksum.
//
// A Journal is safe for concurrent use.
type Journal struct {
	path    string
	dropped int

	mu      sync.Mutex
	format  int    // of the file: 0 for an empty file, 1 or currentFormat
	service string // base URL; "" if format is below currentFormat
	file    *os.File
	write   func([]byte) (int, error) // file.Write; replaced in tests
	end     int64                     // offset after the last complete line
	records map[journalKey]journalRecord
	err     error // set if a record could not be written, and by Close
}

// OpenJournal opens the journal at path, or creates it with mode 0600. If the journal is already
// open, here or in another process, OpenJournal returns ErrJournalInUse. If the file has another
// format or a damaged line, OpenJournal returns an InvalidError and does not change the file.
//
// The first Apply with a new journal writes its first line. Journals of format 1, which have no
// base URL and no checksums, can be read; the first Apply rewrites them. Plan and Apply return an
// InvalidError if the journal belongs to another service.
//
// OpenJournal removes an incomplete last line, which is left if the process was killed while it
// wrote. The switch of that line was not sent. Dropped returns its size.
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

// Dropped returns the size in bytes of the incomplete last line that OpenJournal removed.
func (j *Journal) Dropped() int { return j.dropped }

// Close closes the file, so another process can open it. Later calls do nothing.
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
		return j.invalid("is not a regular file", "give another path")
	}
	if err := lockFile(j.file); err != nil {
		return fmt.Errorf("fleet: open journal %s: %w", j.path, err)
	}
	if here, err := os.Stat(j.path); err != nil || !sameFile(here, j.file) {
		// Another process has just rewritten it.
		return fmt.Errorf("fleet: open journal %s: %w", j.path, ErrJournalInUse)
	}
	content, err := io.ReadAll(io.LimitReader(j.file, maxHeader))
	if err != nil {
		return fmt.Errorf("fleet: open journal: %w", err)
	}
	header, _, whole := bytes.Cut(content, []byte{'\n'})
	switch {
	case whole && j.readHeader(string(header)):
	case !whole && isCutHeader(string(content)):
		return j.restart(len(content))
	default:
		return j.invalid("is not a journal of this version of the library, or its first line is damaged", "give another path, or move the file away")
	}
	rest, err := io.ReadAll(j.file)
	if err != nil {
		return fmt.Errorf("fleet: open journal: %w", err)
	}
	return j.load(append(content, rest...), len(header)+1)
}

func sameFile(info fs.FileInfo, file *os.File) bool {
	opened, err := file.Stat()
	return err == nil && os.SameFile(info, opened)
}

// readHeader reports whether the first line is that of a journal.
func (j *Journal) readHeader(line string) bool {
	if line == headerFormat1 {
		j.format = 1
		return true
	}
	var h journalHeader
	if json.Unmarshal([]byte(line), &h) != nil || h.BaseURL == "" || line+"\n" != headerLine(h.BaseURL) {
		return false
	}
	j.format, j.service = currentFormat, h.BaseURL
	return true
}

// restart truncates a journal whose first line is incomplete.
func (j *Journal) restart(cut int) error {
	j.dropped = cut
	if cut == 0 {
		return nil
	}
	if err := errors.Join(j.file.Truncate(0), j.file.Sync(), j.seek(0)); err != nil {
		return fmt.Errorf("fleet: open journal: %w", err)
	}
	return nil
}

// load reads the records, which begin at offset start, and removes an incomplete last line.
func (j *Journal) load(content []byte, start int) error {
	const restore = "restore the file from a backup, or give another path"
	end := bytes.LastIndexByte(content, '\n') + 1
	number := 1
	for line := range bytes.Lines(content[start:end]) {
		number++
		r, ok := decodeRecord(bytes.TrimSuffix(line, []byte{'\n'}), j.format)
		if !ok {
			return j.invalid(fmt.Sprintf("has a line %d that is no record, or is damaged", number), restore)
		}
		j.keep(r)
	}
	tail := content[end:]
	if r, ok := decodeRecord(tail, j.format); ok {
		return j.complete(r, int64(len(content)))
	}
	if len(tail) > 0 {
		if _, ok := decodeRecord(tail[:len(tail)-1], j.format); ok {
			return j.invalid(fmt.Sprintf("has a line %d whose end is damaged", number+1), restore)
		}
	}
	j.dropped = len(tail)
	j.end = int64(end)
	if j.dropped > 0 {
		if err := errors.Join(j.file.Truncate(j.end), j.file.Sync()); err != nil {
			return fmt.Errorf("fleet: open journal: %w", err)
		}
	}
	return j.seek(j.end)
}

// complete keeps a last record whose newline is missing, and writes the newline.
func (j *Journal) complete(r journalRecord, end int64) error {
	j.keep(r)
	if err := j.seek(end); err != nil {
		return err
	}
	_, err := j.file.WriteString("\n")
	if err := errors.Join(err, j.file.Sync()); err != nil {
		return fmt.Errorf("fleet: open journal: %w", err)
	}
	j.end = end + 1
	return nil
}

// bind prepares the journal for a run on the service at baseURL. It returns an InvalidError if the
// journal belongs to another one. If the run writes, the journal has the current format afterwards.
func (j *Journal) bind(operation, baseURL string, writes bool) error {
	if j == nil {
		return nil
	}
	baseURL = serviceName(baseURL)
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.err != nil || j.format < currentFormat && !writes:
		return nil // a failed journal prevents every switch
	case j.format == currentFormat && serviceName(j.service) == baseURL:
		return nil
	case j.format == currentFormat:
		return invalid(operation, "journal "+j.path, fmt.Sprintf("belongs to the service at %s, not to %s", j.service, baseURL),
			"give another journal, or, if the service has moved, change base_url in its first line")
	}
	begin := j.begin
	if j.format == 1 {
		begin = j.rewrite
	}
	if err := begin(baseURL); err != nil {
		return fmt.Errorf("fleet: write journal %s: %w", j.path, err)
	}
	j.format, j.service = currentFormat, baseURL
	return nil
}

// serviceName normalizes a base URL, so that two base URLs of one service are equal.
func serviceName(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil {
		return baseURL
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	u.Host = strings.ToLower(u.Host)
	if port, ok := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]; ok {
		u.Host = strings.TrimSuffix(u.Host, port)
	}
	return strings.TrimRight(u.String(), "/")
}

// begin writes the first line of an empty journal.
func (j *Journal) begin(baseURL string) error {
	n, err := j.file.WriteString(headerLine(baseURL))
	j.end = int64(n)
	return errors.Join(err, j.file.Sync(), durable.SyncDir(filepath.Dir(j.path)))
}

// rewrite replaces the file with one of the current format that has the same records. The
// replacement is atomic, and the file remains locked.
func (j *Journal) rewrite(baseURL string) error {
	path, err := filepath.EvalSymlinks(j.path)
	if err != nil {
		return err
	}
	// What a run that was killed has left goes first. No other process writes this file, since the
	// journal is locked; O_EXCL follows no symlink that somebody else has put there.
	if err := os.Remove(path + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path+".new", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	content := []byte(headerLine(baseURL))
	for _, r := range slices.SortedFunc(maps.Values(j.records), inOrder) {
		line, err := encodeRecord(r)
		if err != nil {
			return errors.Join(err, file.Close())
		}
		content = append(content, line...)
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Sync()); err != nil {
		return errors.Join(err, file.Close(), os.Remove(path+".new"))
	}
	if file, err = replaceLocked(j.file, file, path); err != nil {
		return err
	}
	j.file, j.write, j.end = file, file.Write, int64(len(content))
	return durable.SyncDir(filepath.Dir(path))
}

func (j *Journal) invalid(problem, remedy string) error {
	return invalid("fleet.OpenJournal", "journal "+j.path, problem, remedy)
}

func (j *Journal) seek(offset int64) error {
	_, err := j.file.Seek(offset, io.SeekStart)
	return err
}

// find returns the record of the last switch of a head to a mode. A nil journal has no records.
func (j *Journal) find(headID string, streaming bool) (journalRecord, bool) {
	if j == nil {
		return journalRecord{}, false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	r, ok := j.records[journalRecord{HeadID: headID, Streaming: streaming}.key()]
	return r, ok
}

// setAccepted records that the service has accepted a switch, or, with false, that a read has shown
// the head in its new mode.
func (j *Journal) setAccepted(headID string, streaming, accepted bool) error {
	r, ok := j.find(headID, streaming)
	if !ok || r.Accepted == accepted {
		return nil
	}
	r.Accepted = accepted
	return j.add(r)
}

// add writes a record. When it returns nil, the record is on disk. After an error, every further
// add fails, since the record may be incomplete.
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
		return nil // already on disk
	}
	line, err := encodeRecord(r)
	if err == nil {
		err = j.append(line)
	}
	if err != nil {
		j.err = fmt.Errorf("fleet: write journal: %w", err)
		return j.err
	}
	j.keep(r)
	return nil
}

// keep stores a record in place of the earlier one with its key. A switch to one mode ends the wait
// for a switch to the other.
func (j *Journal) keep(r journalRecord) {
	j.records[r.key()] = r
	opposite := r
	opposite.Streaming = !r.Streaming
	if other, ok := j.records[opposite.key()]; ok && other.Accepted {
		other.Accepted = false
		j.records[other.key()] = other
	}
}

// append writes a complete line, or truncates the file to its previous size.
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
