package fleet

import "os"

// FailWrites makes every later write of a record fail with err, after a part of the record was
// written.
func (j *Journal) FailWrites(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write = func(line []byte) (int, error) {
		n, _ := j.file.Write(line[:len(line)/2])
		return n, err
	}
}

// OpenFile opens a journal whose file has been opened already.
func OpenFile(path string, file *os.File) error { return (&Journal{path: path, file: file}).open() }

// The first line of a journal, and of one of format 1.
var (
	JournalHeader        = headerLine("https://api.example.com")
	JournalHeaderFormat1 = headerFormat1 + "\n"
)
