package replay

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/recording"
)

// Signer puts new times into events and signs them. The same body gets the same time, so
// that redeliveries stay redeliveries; different events get different ones, so that a
// receiver does not take one for the other.
type Signer struct {
	key  string
	done map[[32]byte]string  // the new timestamps, by the digest of the recorded body
	last map[string]time.Time // what the events of a head, session, type and form were given
}

// NewSigner returns a Signer with a shared key.
func NewSigner(key string) *Signer {
	return &Signer{key, map[[32]byte]string{}, map[string]time.Time{}}
}

// Check returns why an event can't get a new time, or nil.
func (s *Signer) Check(e *recording.Entry) error {
	_, _, err := timestampOf(e.Body)
	return err
}

// Sign returns the body with now as its timestamp, in the form that it has and with no
// other byte changed, and the signature of that.
func (s *Signer) Sign(e *recording.Entry, now time.Time) (body []byte, signature string, err error) {
	span, form, err := timestampOf(e.Body)
	if err != nil {
		return nil, "", err
	}
	digest := sha256.Sum256(e.Body)
	text, ok := s.done[digest]
	if !ok {
		series := e.HeadID + "\n" + e.SessionID + "\n" + e.Event + "\n" + form.layout
		now = now.Truncate(form.unit())
		if last, again := s.last[series]; again && !now.After(last) {
			now = last.Add(form.unit())
		}
		s.last[series], text = now, form.write(now)
		s.done[digest] = text
	}
	body = slices.Concat(e.Body[:span[0]], []byte(`"`+text+`"`), e.Body[span[1]:])
	return body, heads.Sign(body, s.key), nil
}

// form is how a timestamp is written.
type form struct {
	layout string
	zone   *time.Location
	digits int // of the fraction
	time   time.Time
}

func (f form) write(t time.Time) string { return t.In(f.zone).Format(f.layout) }

// unit is the smallest difference that the form shows.
func (f form) unit() time.Duration {
	unit := time.Second
	for range f.digits {
		unit /= 10
	}
	return max(unit, 1)
}

// formOf reads a timestamp: RFC 3339, with T or a space, with or without a fraction, and
// with Z, an offset or no zone, which is UTC.
func formOf(text string) (form, bool) {
	const plain = "2006-01-02T15:04:05"
	if len(text) < len(plain) || text[10] != 'T' && text[10] != ' ' {
		return form{}, false
	}
	layout := strings.Replace(plain, "T", text[10:11], 1)
	rest := text[len(plain):]
	digits := 0
	if strings.HasPrefix(rest, ".") {
		digits = len(rest[1:]) - len(strings.TrimLeft(rest[1:], "0123456789"))
		if digits == 0 {
			return form{}, false
		}
		layout += "." + strings.Repeat("0", digits)
		rest = rest[1+digits:]
	}
	switch {
	case rest == "Z":
		layout += "Z"
	case rest != "":
		layout += "-07:00"
	}
	t, err := time.Parse(layout, text)
	if err != nil {
		return form{}, false
	}
	_, offset := t.Zone()
	return form{layout, time.FixedZone("", offset), digits, t}, true
}

// timestampOf returns where the timestamp of an event begins and ends, quotes included,
// and its form.
func timestampOf(body []byte) (span [2]int, f form, err error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if _, err := decoder.Token(); err != nil {
		return span, f, err
	}
	found := 0
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return span, f, err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return span, f, err
		}
		if text, ok := name.(string); ok && strings.EqualFold(text, "timestamp") {
			end := int(decoder.InputOffset())
			span = [2]int{end - len(value), end}
			found++
		}
	}
	if found != 1 {
		return span, f, errors.New("the body does not have one timestamp, so it can't get a new one")
	}
	var text string
	ok := json.Unmarshal(body[span[0]:span[1]], &text) == nil
	if ok {
		f, ok = formOf(text)
	}
	if !ok {
		return span, f, fmt.Errorf("the timestamp %.40s is in no form that is known, so it can't get a new one", body[span[0]:span[1]])
	}
	return span, f, nil
}

// IsOlder reports whether an event is older than a duration, by its timestamp, or else by
// when it arrived.
func IsOlder(e *recording.Entry, than time.Duration, now time.Time) bool {
	at := e.At
	if _, f, err := timestampOf(e.Body); err == nil {
		at = f.time
	}
	return e.Type == recording.KindEvent && now.Sub(at) > than
}
