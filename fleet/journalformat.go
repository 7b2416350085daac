package fleet

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"regexp"
	"strings"
)

// currentFormat is the format in which journals are written. Format 1 had no base URL
// and no checksums.
const currentFormat = 2

const (
	headerFormat1 = `{"format":"heads-fleet-journal","version":1}`
	headerStart   = `{"format":"heads-fleet-journal","version":2,"base_url":"`
)

// headerEnd matches what of a first line can follow headerStart.
var headerEnd = regexp.MustCompile(`^[^"]*("}?)?$`)

// isCutHeader reports whether content is the beginning of a first line. The empty
// content is one.
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
	line, _ := json.Marshal(journalHeader{"heads-fleet-journal", currentFormat, baseURL}) // of texts and a number
	return string(line) + "\n"
}

// checksumOf returns the end of a record: its checksum as the last member, a CRC-32C
// of the record without it.
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

// decodeRecord reads a line without its end. It reports whether the line is a record
// as it was written.
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

// inOrder orders records so that reading them again has the same result. An accepted
// switch comes last, since a record of the other direction would end the wait for it.
func inOrder(a, b journalRecord) int {
	if a.Accepted != b.Accepted {
		if a.Accepted {
			return 1
		}
		return -1
	}
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.HeadID, b.HeadID))
}
