package headstest

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"regexp"
)

// Each purpose has its own random sequence, so neither a token, generated or given,
// nor a fault changes the ids of a seed.
const (
	idStream    = 1
	tokenStream = 2
	faultStream = 3
)

// ids generates what the service assigns. It is used under the emulator's lock.
type ids struct {
	src      *rand.PCG
	public   int
	webhooks int64
}

// newSource returns a random sequence. Without a seed, every call returns another
// one.
func newSource(seed *uint64, stream uint64) *rand.PCG {
	first := rand.Uint64()
	if seed != nil {
		first = *seed
	}
	return rand.NewPCG(first, stream)
}

func newIDs(seed *uint64, stream uint64) *ids {
	i := &ids{src: newSource(seed, stream)}
	i.public = 10000 + int(i.src.Uint64()%50000)
	return i
}

// clone returns a copy that continues with the same sequence.
func (i *ids) clone() *ids {
	src := *i.src
	return &ids{&src, i.public, i.webhooks}
}

// hex returns n random bytes in hex.
func (i *ids) hex(n int) string { return hex.EncodeToString(i.bytes(n)) }

func (i *ids) bytes(n int) []byte {
	var b []byte
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, i.src.Uint64())
	}
	return b[:n]
}

// uuid returns a version 4 UUID.
func (i *ids) uuid() string {
	b := i.bytes(16)
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// headPublicID counts up from a random start, so every head has its own.
func (i *ids) headPublicID() string {
	i.public++
	return fmt.Sprintf("li-%05d", i.public)
}

func (i *ids) orgPublicID() string {
	return fmt.Sprintf("MyOrg-%04d", 1000+i.src.Uint64()%9000)
}

func (i *ids) webhookID() int64 {
	i.webhooks++
	return i.webhooks
}

var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
