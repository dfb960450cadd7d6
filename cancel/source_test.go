package cancel_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/cancel"
)

func TestSourceIsRequestedOnce(t *testing.T) {
	s := cancel.NewSource()
	defer s.Close()
	token := s.Token()
	require.False(t, s.Requested())
	require.False(t, token.Requested())
	require.True(t, s.Request())
	require.False(t, s.Request())
	require.True(t, s.Requested())
	require.True(t, token.Requested())
	require.True(t, cancel.TokenAt(token.Address()).Requested())
}

func TestZeroTokenIsNeverRequested(t *testing.T) {
	var token cancel.Token
	require.False(t, token.Requested())
	require.Zero(t, token.Address())
	require.Equal(t, token, cancel.TokenAt(0))
	var r cancel.Registration
	require.False(t, r.Register(token, func() { t.Error("called") }))
	require.False(t, r.Deregister())
	child := cancel.NewChild(token)
	require.False(t, child.Requested())
	child.Close()
}

func TestCloseGivesTheMemoryBackClean(t *testing.T) {
	s := cancel.NewSource()
	address := s.Token().Address()
	s.Request()
	s.Close()
	again := cancel.NewSource()
	defer again.Close()
	require.Equal(t, address, again.Token().Address())
	require.False(t, again.Requested())
}

func TestCloseFindsWhatIsLeft(t *testing.T) {
	s := cancel.NewSource()
	var r cancel.Registration
	r.Register(s.Token(), func() { require.Panics(t, s.Close, "inside a request") })
	require.Panics(t, s.Close, "a registration waits")
	s.Request()
	r.Deregister()
	s.Close()

	parent := cancel.NewSource()
	child := cancel.NewChild(parent.Token())
	require.Panics(t, parent.Close, "a child is left")
	child.Close()
	parent.Close()
}

func TestChildrenFollowNewestFirst(t *testing.T) {
	parent := cancel.NewSource()
	var order []int
	var children []*cancel.Source
	var registrations [3]cancel.Registration
	for i := range registrations {
		child := cancel.NewChild(parent.Token())
		registrations[i].Register(child.Token(), func() { order = append(order, i) })
		children = append(children, child)
	}
	registrations[1].Deregister()
	children[1].Close()
	require.True(t, parent.Request())
	require.Equal(t, []int{2, 0}, order)
	for _, i := range []int{0, 2} {
		require.False(t, children[i].Request(), "was requested with the parent")
		registrations[i].Deregister()
		children[i].Close()
	}
	parent.Close()
}

// A goroutine would leave its thread while it waits in a callback, were it not locked to it, and then not be known as the one
// that runs the callback: it would wait for itself.
func TestGoroutineStaysOnItsThread(t *testing.T) {
	s := cancel.NewSource()
	defer s.Close()
	var end atomic.Bool
	defer end.Store(true)
	for range 2 * runtime.GOMAXPROCS(0) { // so many others want to run that whoever yields goes on wherever there is room
		go func() {
			for !end.Load() {
				runtime.Gosched()
			}
		}()
	}
	first := cancel.Thread()
	for start := time.Now(); cancel.Thread() == first && time.Since(start) < time.Second; { // until it has moved once
		runtime.Gosched()
	}
	var early, late cancel.Registration
	callback := func(r *cancel.Registration) func() {
		return func() {
			thread := cancel.Thread()
			for range 5000 {
				runtime.Gosched()
				require.Equal(t, thread, cancel.Thread())
			}
			r.Deregister()
		}
	}
	early.Register(s.Token(), callback(&early))
	s.Request()
	late.Register(s.Token(), callback(&late))
}

// Work that starts and ends under a token costs nothing of Go's heap: the lane's and the core's hot paths depend on it.
func TestSharedMemoryNeedsNoAllocation(t *testing.T) {
	s, other := cancel.NewSource(), cancel.NewSource()
	defer s.Close()
	defer other.Close()
	other.Request()
	memory := new(cancel.Registration) // its memory stands in for a registration of C's
	callback := cancel.NewCallback(func() {})
	defer callback.Release()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r := cancel.RegistrationForTest()
		for _, source := range []*cancel.Source{s, other} {
			r.Register(cancel.MemoryForTest(source), callback.Function(), uintptr(callback))
			r.Deregister()
		}
		cancel.ReleaseForTest(r)
	}))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		memory.Register(s.Token(), nothing)
		memory.Deregister()
	}), "nor does a Go function, once the tables have grown")
}

func nothing() {}
