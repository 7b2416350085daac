package addresses

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
)

// sampleSize is how much of a file tells whether it is a text.
const sampleSize = 8 << 10

// textFile is an open file of text, which is read as UTF-8.
type textFile struct {
	io.Reader
	file  *os.File
	order binary.ByteOrder // of UTF-16; nil for anything else
}

// openText opens a file. It returns nil for a binary: a file whose first 8 KiB hold a
// zero byte and are not UTF-16, or what is no regular file.
func openText(ctx context.Context, path string) (*textFile, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(interruptible(ctx, file), 1<<16)
	sample, err := in.Peek(sampleSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, file.Close())
	}
	t := &textFile{in, file, utf16Order(sample)}
	switch {
	case t.order != nil:
		t.Reader = &utf16Reader{in: in, order: t.order, path: path}
	case bytes.IndexByte(sample, 0) >= 0:
		return nil, file.Close()
	}
	return t, nil
}

func (t *textFile) Close() error { return t.file.Close() }

// encode returns a writer that puts UTF-8 into w in the form of the file.
func (t *textFile) encode(w io.Writer) io.Writer {
	if t.order == nil {
		return w
	}
	return utf16Writer{w, t.order}
}

// utf16Order returns the byte order of UTF-16, with or without a byte order mark, and
// nil for anything else.
func utf16Order(sample []byte) binary.ByteOrder {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		marked := len(sample) >= 2 && order.Uint16(sample) == '\ufeff'
		if (marked || bytes.IndexByte(sample, 0) >= 0) && isUTF16(sample, order, marked) {
			return order
		}
	}
	return nil
}

// isUTF16 reports whether a sample is text in UTF-16. With a byte order mark it must
// only be free of control characters. Without one, every character must be printable,
// and every fourth of ASCII or Latin-1. Half a character at the end is ignored.
func isUTF16(sample []byte, order binary.ByteOrder, marked bool) bool {
	units := make([]uint16, len(sample)/2)
	for i := range units {
		units[i] = order.Uint16(sample[2*i:])
	}
	if n := len(units); n > 0 && utf16.IsSurrogate(rune(units[n-1])) {
		units = units[:n-1]
	}
	latin := 0
	for _, r := range utf16.Decode(units) {
		if r <= unicode.MaxLatin1 {
			latin++
		}
		switch {
		case unicode.IsSpace(r):
		case unicode.IsControl(r):
			return false
		case !marked && (!unicode.IsPrint(r) || r == unicode.ReplacementChar):
			return false
		}
	}
	return len(units) > 0 && (marked || 4*latin >= len(units))
}

// utf16Reader reads UTF-16 as UTF-8.
type utf16Reader struct {
	in    io.Reader
	order binary.ByteOrder
	path  string
	out   []byte // not yet read
	err   error
}

func (r *utf16Reader) Read(p []byte) (int, error) {
	for len(r.out) == 0 && r.err == nil {
		r.out, r.err = r.decode(make([]byte, 1<<15))
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	if len(r.out) > 0 {
		return n, nil
	}
	return n, r.err
}

// decode reads one piece of the file, up to a whole character.
func (r *utf16Reader) decode(piece []byte) (decoded []byte, err error) {
	n, err := io.ReadFull(r.in, piece)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	piece = piece[:n]
	if n >= 2 && n%2 == 0 && utf16.IsSurrogate(rune(r.order.Uint16(piece[n-2:]))) && err == nil {
		rest := make([]byte, 2)
		m, _ := io.ReadFull(r.in, rest)
		piece = append(piece, rest[:m]...)
	}
	lossy := fmt.Errorf("%s is broken UTF-16, which can't be rewritten without a loss; it is skipped: convert it to UTF-8 first", show.Line(r.path))
	if len(piece)%2 != 0 {
		return nil, lossy
	}
	for i := 0; i < len(piece); i += 2 {
		unit := rune(r.order.Uint16(piece[i:]))
		if utf16.IsSurrogate(unit) {
			low := rune(0)
			if i+2 < len(piece) {
				low = rune(r.order.Uint16(piece[i+2:]))
			}
			if unit = utf16.DecodeRune(unit, low); unit == unicode.ReplacementChar {
				return nil, lossy
			}
			i += 2
		}
		decoded = utf8.AppendRune(decoded, unit)
	}
	return decoded, err
}

// utf16Writer writes UTF-8 as UTF-16. Each Write has whole characters.
type utf16Writer struct {
	w     io.Writer
	order binary.ByteOrder
}

func (w utf16Writer) Write(p []byte) (int, error) {
	units := utf16.Encode([]rune(string(p)))
	out := make([]byte, 2*len(units))
	for i, unit := range units {
		w.order.PutUint16(out[2*i:], unit)
	}
	if _, err := w.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}
