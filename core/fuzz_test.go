package core_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/core"
)

// What C can hand over: any time, any handle, in any order. The seeds in testdata were kept because each one reaches something that the
// others do not.

// program reads a fuzzer's bytes as steps and numbers.
type program []byte

func (p *program) byte() byte {
	if len(*p) == 0 {
		return 0
	}
	b := (*p)[0]
	*p = (*p)[1:]
	return b
}

func (p *program) uint64() uint64 {
	var word [8]byte
	*p = (*p)[copy(word[:], *p):]
	return binary.LittleEndian.Uint64(word[:])
}

// FuzzTimers compares a wheel with a map: deadlines anywhere in int64, and a clock that jumps as far as it likes, forward.
func FuzzTimers(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		p := program(data)
		w, l := newWheel(t)
		timers := sharedSlice[core.Timer](t, 16)
		pending := map[*core.Timer]int64{}
		now := int64(0)
		for steps := 0; len(p) > 0 && steps < 300; steps++ {
			what := p.byte()
			timer := &timers[what%16]
			_, isPending := pending[timer]
			switch what >> 4 % 4 {
			case 0, 1:
				deadline := int64(p.uint64())
				if what>>4%4 == 1 { // near now, where the levels of the wheel meet
					deadline = now + deadline>>(what>>6*16)
				}
				if isPending {
					w.Unlink(l, timer)
					delete(pending, timer)
				}
				due := w.LinkAt(l, timer, deadline)
				if due {
					require.LessOrEqual(t, deadline, now, "due at once, and early")
				} else {
					pending[timer] = deadline
				}
			case 2:
				if isPending {
					w.Unlink(l, timer)
					delete(pending, timer)
				}
			case 3:
				by := int64(p.uint64() >> 1 >> (what >> 6 * 16))
				if now += by; now < 0 {
					now = math.MaxInt64
				}
				for _, fired := range w.Advance(l, now) {
					deadline, ok := pending[fired]
					require.True(t, ok, "fired once, and only while pending")
					require.LessOrEqual(t, deadline, now, "never early")
					delete(pending, fired)
				}
			}
			require.EqualValues(t, len(pending), w.Pending)
			earliest := w.Earliest.Load()
			for _, deadline := range pending {
				if deadline > never-tick { // never
					continue
				}
				require.Greater(t, deadline, now-tick, "what is due by a tick has fired")
				require.Less(t, earliest-tick, max(deadline, 0), "the sleepers come back in time")
			}
		}
		require.EqualValues(t, len(pending), w.Close(l), "all that is left is cancelled")
	})
}

// FuzzHandles opens and closes, and asks for handles of all kinds in between: only those that are open mean anything, and they mean the
// descriptor that they were given for.
func FuzzHandles(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		p := program(data)
		table := newTable(t)
		table.poller.quiet = true
		open := map[uint64]int32{}
		var handles []uint64 // that were ever given out
		check := func(handle uint64) {
			system, err := table.System(handle)
			if wanted, live := open[handle]; live {
				require.NoError(t, err)
				require.Equal(t, wanted, system)
			} else {
				require.Equal(t, core.EBadHandle, err)
			}
		}
		for steps := 0; len(p) > 0 && steps < 300; steps++ {
			what := p.byte()
			handle := p.uint64()
			if what&8 != 0 && len(handles) > 0 { // one that was given out, or something like it
				given := handles[int(handle%uint64(len(handles)))]
				if what&16 != 0 {
					given ^= 1 << (handle >> 8 % 64)
				}
				handle = given
			}
			switch what % 4 {
			case 0, 1:
				table.poller.refuses = nil
				if what&32 != 0 {
					table.poller.refuses = core.ENoMem
				}
				system := int32(steps)
				given, err := table.Open(system, uint32(what>>6))
				if table.poller.refuses != nil {
					require.Equal(t, core.ENoMem, err)
					continue
				}
				require.NoError(t, err)
				require.NotContains(t, handles, given, "a handle is never given out twice")
				open[given] = system
				handles = append(handles, given)
				check(given)
			case 2:
				_, live := open[handle]
				err := table.Close(handle, func(*core.Op) { require.Fail(t, "nobody waits") })
				require.Equal(t, live, err == nil)
				delete(open, handle)
			case 3:
				table.Ready(handle, 3, what&64 != 0, func(*core.Op) { require.Fail(t, "nobody waits") })
			}
			check(handle)
			require.EqualValues(t, len(open), table.shared.Descriptors.Load())
		}
		for _, handle := range handles {
			check(handle)
		}
	})
}
