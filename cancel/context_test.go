package cancel_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/cancel"
)

var errReason = errors.New("reason")

// settled waits until no more goroutines run than there did, and fails with all stacks if that does not come about.
func settled(t *testing.T, goroutines int) {
	for range 1000 {
		if runtime.NumGoroutine() <= goroutines {
			return
		}
		time.Sleep(time.Millisecond)
	}
	stacks := make([]byte, 1<<16)
	t.Fatalf("goroutines are left:\n%s", stacks[:runtime.Stack(stacks, true)])
}

func TestFromContextWaitsWithoutGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	ctx, end := context.WithCancel(context.Background())
	var stops []func()
	for range 100 {
		_, stop := cancel.FromContext(ctx)
		stops = append(stops, stop)
	}
	require.Less(t, runtime.NumGoroutine(), before+50, "one for each; a few less than before are there when those of another test end just now")
	for _, stop := range stops[50:] {
		stop()
	}
	end()
	for _, stop := range stops {
		stop()
	}
	settled(t, before)
}

func TestFromContextThatHasEnded(t *testing.T) {
	ctx, end := context.WithCancel(context.Background())
	end()
	before := runtime.NumGoroutine()
	source, stop := cancel.FromContext(ctx)
	require.True(t, source.Requested(), "at once")
	stop()
	settled(t, before)
}

func TestFromContextThatIsStopped(t *testing.T) {
	before := runtime.NumGoroutine()
	ctx, end := context.WithCancel(context.Background())
	source, stop := cancel.FromContext(ctx)
	address := source.Token().Address()
	stop()
	next := cancel.NewSource()
	defer next.Close()
	require.Equal(t, address, next.Token().Address(), "the memory came back")
	end()
	settled(t, before)
	require.False(t, next.Requested(), "and has nothing to do with the context any more")
}

func TestFromContextIsStoppedInsideItsCallback(t *testing.T) {
	before := runtime.NumGoroutine()
	ctx, end := context.WithCancel(context.Background())
	source, stop := cancel.FromContext(ctx)
	done := make(chan struct{})
	var r cancel.Registration
	r.Register(source.Token(), func() {
		r.Deregister()
		stop()
		close(done)
	})
	end()
	<-done
	settled(t, before) // a source closed too early would have panicked
}

func TestContextEndsWithItsParent(t *testing.T) {
	s := cancel.NewSource()
	defer s.Close()
	parent, end := context.WithCancelCause(context.Background())
	ctx, stop := s.Token().Context(parent)
	end(errReason)
	<-ctx.Done()
	require.ErrorIs(t, context.Cause(ctx), errReason)
	require.False(t, s.Requested())
	stop()
}

func TestContextOfARequestedToken(t *testing.T) {
	s := cancel.NewSource()
	defer s.Close()
	s.Request()
	ctx, stop := s.Token().Context(context.Background())
	require.ErrorIs(t, context.Cause(ctx), cancel.ErrRequested)
	stop()
	require.ErrorIs(t, context.Cause(ctx), cancel.ErrRequested, "the first cause stays")
}

func TestContextOfTheZeroToken(t *testing.T) {
	ctx, stop := cancel.Token{}.Context(context.Background())
	require.NoError(t, ctx.Err())
	stop()
	require.ErrorIs(t, context.Cause(ctx), context.Canceled)
}

func TestContextIsStoppedWhereItEnds(t *testing.T) {
	s := cancel.NewSource()
	defer s.Close()
	ctx, stop := s.Token().Context(context.Background())
	var ran bool
	inner, stopInner := context.WithCancel(ctx)
	defer stopInner()
	var r cancel.Registration
	r.Register(s.Token(), func() { ran = true; stop() }) // newer, so it runs before the context ends by itself
	require.True(t, s.Request())
	require.True(t, ran)
	<-inner.Done()
	require.ErrorIs(t, context.Cause(ctx), context.Canceled)
	r.Deregister()
}
