package sqlite

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNetworkFileSystemsAreKnown(t *testing.T) {
	for magic, name := range map[uint32]string{0x6969: "NFS", 0xff534d42: "CIFS", 0x01021997: "9P"} {
		assert.Equal(t, name, networkFileSystems[magic])
	}
	assert.Empty(t, networkFileSystems[0xef53], "ext4")
	assert.Empty(t, networkFileSystem(t.TempDir()))
}

func TestOpenRefusesANetworkFileSystem(t *testing.T) {
	dir := t.TempDir()
	var s syscall.Statfs_t
	require.NoError(t, syscall.Statfs(dir, &s))
	networkFileSystems[uint32(s.Type)] = "a network of the test"
	defer delete(networkFileSystems, uint32(s.Type))
	_, err := Open(dir + "/inbox.db")
	assert.ErrorContains(t, err, "WAL mode loses data")
}
