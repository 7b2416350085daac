//go:build linux

package inbox_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/sqlite"
)

// crashed returns copies of an inbox's files in the state after a crash. Some events are only in
// the -wal file.
func crashed(t *testing.T, events int) (path string) {
	s, in := newInbox(t, "sqlite")
	appendEvents(t, in, "session", 0, events*3/4)
	s.exec(t, "PRAGMA wal_checkpoint(TRUNCATE)")
	appendEvents(t, in, "session", events*3/4, events)
	path = filepath.Join(t.TempDir(), "inbox.db")
	for _, suffix := range []string{"", "-wal", "-mark"} {
		copyFile(t, s.name+suffix, path+suffix)
	}
	return path
}

func copyFile(t *testing.T, from, to string) {
	b := need(os.ReadFile(from))(t)
	require.NoError(t, os.WriteFile(to, b, 0o600))
}

// assertDamagedOrWhole asserts that Open returns ErrDamaged or that all acknowledged events are
// readable.
func assertDamagedOrWhole(t *testing.T, path string, events int) (damaged bool) {
	in, err := store{"sqlite", path}.try(t.Context())
	n := 0
	if err == nil {
		defer in.Close(context.Background())
		err = in.Replay(t.Context(), inbox.Query{}, func(_ context.Context, d *inbox.Delivery) error {
			assert.Equal(t, string(eventBody("head", "session", numberOf(d.Event))), string(d.Event.Raw.Bytes()))
			n++
			return nil
		})
	}
	if err != nil {
		require.ErrorIs(t, err, inbox.ErrDamaged)
		return true
	}
	assert.Equal(t, events, n)
	return false
}

func TestDamagedFileIsNoticed(t *testing.T) {
	const events = 100
	truncate := func(suffix string, part float64) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			info := need(os.Stat(path + suffix))(t)
			require.NoError(t, os.Truncate(path+suffix, int64(float64(info.Size())*part)))
		}
	}
	remove := func(suffix string) func(*testing.T, string) {
		return func(t *testing.T, path string) { require.NoError(t, os.Remove(path+suffix)) }
	}
	for name, damage := range map[string]func(*testing.T, string){
		"cut": truncate("", 0.5), "emptied": truncate("", 0), "removed": remove(""),
		"wal removed": remove("-wal"), "wal cut": truncate("-wal", 0.7), "wal emptied": truncate("-wal", 0),
		"no database": func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, []byte("this is not a database, but a text of some length"), 0o600))
			require.NoError(t, os.Remove(path+"-wal"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := crashed(t, events)
			damage(t, path)
			assert.True(t, assertDamagedOrWhole(t, path, events))
		})
	}
	path := crashed(t, events)
	store{"sqlite", path}.exec(t, "PRAGMA wal_checkpoint(TRUNCATE)")
	_ = os.Remove(path + "-wal")
	assert.False(t, assertDamagedOrWhole(t, path, events), "checkpointed by a shell")
	assert.False(t, assertDamagedOrWhole(t, crashed(t, events), events), "not damaged")
}

func TestDamagedErrorSaysHowToGoOn(t *testing.T) {
	s := store{"sqlite", crashed(t, 100)}
	require.NoError(t, os.Remove(s.name+"-wal"))
	_, err := s.try(t.Context())
	require.ErrorContains(t, err, "remove "+s.name+"-mark to go on")
	require.NoError(t, os.Remove(s.name+"-mark"))
	s.open(t)
}

func TestFlippedBytesReachNoFunction(t *testing.T) {
	const events, flips = 100, 60
	original := crashed(t, events)
	store{"sqlite", original}.exec(t, "PRAGMA wal_checkpoint(TRUNCATE)")
	whole := need(os.ReadFile(original))(t)
	damaged := 0
	for i := range flips {
		path := filepath.Join(t.TempDir(), "inbox.db")
		at, noise := rand.IntN(len(whole)), make([]byte, 1+i%64)
		for j := range noise {
			noise[j] = byte(rand.Uint32())
		}
		file := slices.Concat(whole, noise)[:max(len(whole), at+len(noise))]
		copy(file[at:], noise)
		require.NoError(t, os.WriteFile(path, file, 0o600))
		copyFile(t, original+"-mark", path+"-mark")
		if t.Run(fmt.Sprintf("at %d %x", at, noise), func(t *testing.T) {
			if assertDamagedOrWhole(t, path, events) {
				damaged++
			}
		}); t.Failed() {
			return
		}
	}
	t.Logf("%d of %d damages were noticed, the others changed nothing", damaged, flips)
}

const namespaceVariable = "HEADS_INBOX_TEST_NAMESPACE"

// mountSmall mounts a tmpfs of 2 MB. A user without privileges needs a namespace for that:
// mountSmall then runs the test again in one, and returns false.
func mountSmall(t *testing.T) (dir string, ok bool) {
	dir = t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m")
	if err == nil {
		t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
		return dir, true
	}
	require.Empty(t, os.Getenv(namespaceVariable), "%v", err)
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), namespaceVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return "", false
}

func TestFullDiskRefusesAtOnceAndRecovers(t *testing.T) {
	dir, ok := mountSmall(t)
	if !ok {
		return
	}
	in := store{"sqlite", filepath.Join(dir, "inbox.db")}.open(t)
	send := serve(t, in)
	acknowledged := 0
	begun := time.Now()
	for send(eventBody("head", "session", acknowledged)) == http.StatusOK {
		acknowledged++
		require.Less(t, acknowledged, 100000)
		begun = time.Now()
	}
	assert.Less(t, time.Since(begun), 1200*time.Millisecond, "the first refusal does not wait for room")
	_, err := in.Append(t.Context(), newEvent(t, "head", "session", acknowledged))
	assert.ErrorIs(t, err, inbox.ErrFull)
	for range 3 {
		begun := time.Now()
		assert.Equal(t, http.StatusServiceUnavailable, send(eventBody("head", "session", acknowledged)))
		assert.Less(t, time.Since(begun), 500*time.Millisecond)
	}
	require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=16m"))
	eventually(t, "there is room", func() bool { return send(eventBody("head", "session", acknowledged)) == http.StatusOK })
	assert.Len(t, replayed(t, in, inbox.Query{}), acknowledged+1)
	t.Logf("%d events until the disk was full, one after it", acknowledged)
}

func TestOpenRefusesPathsThatWouldNotHold(t *testing.T) {
	for path, want := range map[string]string{
		"":                     "want the path of a file",
		":memory:":             "want the path of a file",
		t.TempDir():            "not a regular file",
		"/nowhere/at/all/x.db": "create it first",
	} {
		_, err := sqlite.Open(path)
		assert.ErrorContains(t, err, want, path)
	}
}

func TestFilesAreReadableByTheOwnerAlone(t *testing.T) {
	s := store{"sqlite", filepath.Join(t.TempDir(), "a b?c#d%e.db")}
	in := s.open(t)
	appendEvents(t, in, "session", 1, 2)
	entries := need(os.ReadDir(filepath.Dir(s.name)))(t)
	names := map[string]os.FileMode{}
	for _, e := range entries {
		info := need(e.Info())(t)
		names[e.Name()] = info.Mode()
	}
	assert.Equal(t, map[string]os.FileMode{
		"a b?c#d%e.db": 0o600, "a b?c#d%e.db-wal": 0o600, "a b?c#d%e.db-shm": 0o600, "a b?c#d%e.db-mark": 0o600,
	}, names)
}

func TestReadOnlyFileIsRefused(t *testing.T) {
	dir, ok := mountSmall(t)
	if !ok {
		return
	}
	s := store{"sqlite", filepath.Join(dir, "inbox.db")}
	require.NoError(t, s.open(t).Close(t.Context()))
	require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	_, err := s.try(t.Context())
	assert.ErrorContains(t, err, "read-only file system")
}

func TestCloseLeavesThePoolOfTheCaller(t *testing.T) {
	pool := newPool(t, newDatabase(t), 2)
	in := openPool(t, pool)
	appendEvents(t, in, "session", 0, 1)
	require.NoError(t, in.Close(t.Context()))
	assert.NoError(t, pool.Ping(t.Context()))
	// The pool destroys a connection with a cancelled statement in another goroutine.
	assert.Eventually(t, func() bool { return pool.Stat().AcquiredConns() == 0 }, 10*time.Second, time.Millisecond)
}
