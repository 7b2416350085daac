package fleet

// FailWrites makes every later write of a record fail with err, after a part of the
// record was written.
func (j *Journal) FailWrites(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write = func(line []byte) (int, error) {
		n, _ := j.file.Write(line[:len(line)/2])
		return n, err
	}
}

// JournalHeader is the first line of a journal.
const JournalHeader = journalHeader
