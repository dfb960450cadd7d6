package cancel_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/cancel"
)

func TestDeregisterTellsWhetherItCameFirst(t *testing.T) {
	s := cancel.NewSource()
	defer s.Close()
	var calls int
	var r cancel.Registration
	require.False(t, r.Deregister(), "idle")
	require.False(t, r.Register(s.Token(), func() { calls++ }))
	require.True(t, r.Deregister())
	require.False(t, r.Deregister(), "idle again")
	require.False(t, r.Register(s.Token(), func() { calls++ }))
	s.Request()
	require.Equal(t, 1, calls)
	require.False(t, r.Deregister(), "has been called")
	require.True(t, r.Register(s.Token(), func() { calls++ }), "too late: called at once")
	require.Equal(t, 2, calls)
	require.False(t, r.Deregister())
}

func TestRegistrationInUseIsRefused(t *testing.T) {
	s := cancel.NewSource()
	defer s.Close()
	var r cancel.Registration
	var first int
	r.Register(s.Token(), func() { first++ })
	require.Panics(t, func() { r.Register(s.Token(), func() { t.Error("called") }) })
	s.Request()
	require.Equal(t, 1, first, "the one in use is unharmed")
	require.False(t, r.Deregister())
}

func TestCallbackDeregistersItself(t *testing.T) {
	s := cancel.NewSource()
	defer s.Close()
	var r, late cancel.Registration
	r.Register(s.Token(), func() { require.False(t, r.Deregister()) })
	s.Request()
	require.True(t, late.Register(s.Token(), func() { require.False(t, late.Deregister()) }))
}

// Many stop functions in Go may be called by anybody, any number of times; registrations keep up with that.
func TestOneOfManyDeregisters(t *testing.T) {
	for range 200 {
		s := cancel.NewSource()
		var r cancel.Registration
		var calls, first atomic.Int32
		r.Register(s.Token(), func() { calls.Add(1) })
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				if r.Deregister() {
					first.Add(1)
				}
			})
		}
		group.Go(func() { s.Request() })
		group.Wait()
		require.EqualValues(t, 1, calls.Load()+first.Load(), "called, or deregistered first")
		s.Close()
	}
}

func TestCallbackNumbersAreReused(t *testing.T) {
	var order []int
	a := cancel.NewCallback(func() { order = append(order, 1) })
	a.Release()
	b := cancel.NewCallback(func() { order = append(order, 2) })
	require.Equal(t, a, b)
	cancel.Dispatch(uintptr(b))
	require.Equal(t, []int{2}, order)
	b.Release()
}

func TestHostIsInstalledOnce(t *testing.T) {
	require.Panics(t, func() { cancel.Install(cancel.Host{}) })
	require.NotZero(t, cancel.Thread(), "and stays")
}
