package core_test

import (
	"math"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"weft/core"
	"weft/core/purelane"
)

// arenas hold what shared gave out in a test. It goes when everything else of the test has ended: ops outlive the runtimes that they are
// queued at.
var arenas sync.Map // testing.TB -> *[]unsafe.Pointer

// sharedSlice gives out n consecutive pieces of shared memory for the length of a test.
func sharedSlice[T any](t testing.TB, n int) []T {
	var zero T
	p := purelane.Memory{}.Alloc(unsafe.Sizeof(zero) * uintptr(n))
	require.NotNil(t, p)
	arena, known := arenas.LoadOrStore(t, new([]unsafe.Pointer))
	pieces := arena.(*[]unsafe.Pointer)
	if !known {
		t.Cleanup(func() {
			for _, p := range *pieces {
				purelane.Memory{}.Free(p)
			}
			arenas.Delete(t)
		})
	}
	*pieces = append(*pieces, p)
	return unsafe.Slice((*T)(p), n)
}

// shared gives out one.
func shared[T any](t testing.TB) *T { return &sharedSlice[T](t, 1)[0] }

// functions are what the ops of these tests run: an op's Run is 1 + an index here instead of a C function pointer.
var functions struct {
	sync.RWMutex
	list []func(op *core.Op)
}

// function makes a Run for ops out of a Go function.
func function(f func(op *core.Op)) uintptr {
	functions.Lock()
	defer functions.Unlock()
	functions.list = append(functions.list, f)
	return uintptr(len(functions.list))
}

// call calls what function made, and C function pointers as the product does.
func call(run, argument uintptr) {
	if run > 1<<16 {
		purelane.Call(run, argument)
		return
	}
	functions.RLock()
	f := functions.list[run-1]
	functions.RUnlock()
	f(*(**core.Op)(unsafe.Pointer(&argument)))
}

// fixture is a runtime on the pure-Go lane.
type fixture struct {
	*core.Runtime
	lane *purelane.Lane
}

var nextID uint64

// start starts a runtime that the test stops, at the latest, when it ends.
func start(t testing.TB, workers int) *fixture { return startWith(t, core.Config{Workers: workers}) }

// startWith is start with a choice of Most, Add and Poller.
func startWith(t testing.TB, c core.Config) *fixture {
	if c.Poller == nil {
		c.Poller = nothingToPoll{}
	}
	memory := shared[core.RuntimeMemory](t)
	nextID += 1 << 8
	f := &fixture{lane: purelane.New(purelane.Memory{}, c.Poller, call)}
	threads := new(purelane.Threads)
	c.Shared, c.ID, c.CPUs, c.Lane, c.Memory, c.Call = memory, nextID+1, c.Workers, f.lane, purelane.Memory{}, call
	c.Start = threads.Start
	if c.Add == nil {
		c.Add = threads.Add
	}
	r, err := core.New(c)
	require.NoError(t, err)
	f.Runtime = r
	t.Cleanup(func() {
		r.Stop()
		r.Wait()
		threads.Join()
		r.Destroy()
	})
	return f
}

// worker is the worker on which the current op runs: tests that need it have one worker, or look for the goroutine themselves.
func (f *fixture) worker(i int) *core.WorkerMemory { return f.Shared().Worker(i) }

// eventually waits for a condition that the scheduler brings about; its bound is only there to end a test that has failed.
func eventually(t testing.TB, condition func() bool, what string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			require.Fail(t, "never came true: "+what)
		}
	}
}

const never = int64(math.MaxInt64)
