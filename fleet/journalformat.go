package fleet

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"regexp"
	"strings"
	"time"

	heads "github.com/headsapi/heads-go"
)

// currentFormat is the format in which journals are written. Format 1 had no base URL and no
// checksums.
const currentFormat = 2

const (
	headerFormat1 = `{"format":"heads-fleet-journal","version":1}`
	headerStart   = `{"format":"heads-fleet-journal","version":2,"base_url":"`
)

// maxHeader is how much of a file is read to recognize its format.
const maxHeader = 16 << 10

// headerEnd matches the rest of a first line, or of its beginning, after headerStart.
var headerEnd = regexp.MustCompile(`^[^"]*("}?)?$`)

// isCutHeader reports whether content is a prefix of a first line. The empty content is one.
func isCutHeader(content string) bool {
	rest, begun := strings.CutPrefix(content, headerStart)
	return strings.HasPrefix(headerFormat1, content) || strings.HasPrefix(headerStart, content) ||
		begun && len(content) < maxHeader && headerEnd.MatchString(rest)
}

// journalHeader is the first line of a journal of the current format.
type journalHeader struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	BaseURL string `json:"base_url"`
}

// headerLine returns the first line of a journal.
func headerLine(baseURL string) string {
	line, _ := json.Marshal(journalHeader{"heads-fleet-journal", currentFormat, baseURL}) // can't fail
	return string(line) + "\n"
}

// journalRecord is one line after the first: a switch that is about to be sent, or its outcome.
type journalRecord struct {
	HeadID    string     `json:"head_id"`
	Label     string     `json:"label,omitempty"`
	Streaming bool       `json:"streaming"` // the mode to which the head is switched
	Old       oldAddress `json:"old"`
	At        time.Time  `json:"at"`

	// Accepted is set if the service has accepted the switch, but no read has shown the head in
	// that mode yet.
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
	headID    string // in lower case
	streaming bool
}

func (r journalRecord) key() journalKey { return journalKey{strings.ToLower(r.HeadID), r.Streaming} }

func keyless(a heads.AccessURL) oldAddress {
	return oldAddress{Base: a.Base, OrgPublicID: a.PublicOrgID, HeadPublicID: a.PublicHeadID}
}

// withKey returns the old access URL with the head's key, which a switch does not change.
func (a oldAddress) withKey(key heads.Secret) heads.AccessURL {
	return heads.AccessURL{Base: a.Base, PublicOrgID: a.OrgPublicID, PublicHeadID: a.HeadPublicID, APIKey: key}
}

// checksumOf returns the last member of a record: the CRC-32C of the record without this member.
func checksumOf(record []byte) string {
	return fmt.Sprintf(`,"crc32c":"%08x"}`, crc32.Checksum(record, crc32.MakeTable(crc32.Castagnoli)))
}

// encodeRecord returns the line of a record.
func encodeRecord(r journalRecord) ([]byte, error) {
	record, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return append(append(record[:len(record)-1], checksumOf(record)...), '\n'), nil
}

// decodeRecord decodes a line without its newline. It reports whether the line is a valid record.
func decodeRecord(line []byte, format int) (r journalRecord, ok bool) {
	record := line
	if format > 1 {
		length := len(line) - len(checksumOf(nil))
		if length < 0 {
			return r, false
		}
		record = append(bytes.Clone(line[:length]), '}')
		if checksumOf(record) != string(line[length:]) {
			return r, false
		}
	}
	if json.Unmarshal(record, &r) != nil || r.HeadID == "" || r.Old.Base == "" {
		return r, false
	}
	return r, true
}

// inOrder compares records for rewriting. Reading them in this order gives the same state: accepted
// switches come last, since a later record of the other direction would end the wait for them.
func inOrder(a, b journalRecord) int {
	if a.Accepted != b.Accepted {
		if a.Accepted {
			return 1
		}
		return -1
	}
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.HeadID, b.HeadID))
}
