package canceltest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/cancel"
)

// A program is a random use of a few sources and registrations on one thread, callbacks included, read from bytes: first what each
// registration's callback does (two instructions), then what is done around them. An instruction is two bytes.
const (
	programSources       = 2
	programRegistrations = 6
	programInside        = 2
	programCalls         = 300 // after which callbacks do nothing more, so that every program ends
	programLength        = 400 // instructions
)

const (
	opRequest = iota
	opRequested
	opRegister
	opDeregister
	opNothing
	ops
)

type instruction struct {
	op, registration, source int
	other                    bool // done by the requester's end, or not
}

func decode(data []byte) (in instruction, rest []byte) {
	if len(data) < 2 {
		return instruction{op: opNothing}, nil
	}
	a, b := int(data[0]), int(data[1])
	return instruction{op: a % ops, other: a >= 128, registration: b % programRegistrations,
		source: b / programRegistrations % programSources}, data[2:]
}

// machine is what a program runs on: real ends, or the model.
type machine interface {
	request(other bool, source int) int
	requested(other bool, source int) bool
	register(other bool, registration, source int, f func()) int
	deregister(other bool, registration int) int
}

// execute runs a program and tells everything that could be seen, in order.
func execute(m machine, data []byte) (trace []string) {
	var inside [programRegistrations][programInside]instruction
	for r := range inside {
		for i := range inside[r] {
			inside[r][i], data = decode(data)
		}
	}
	say := func(format string, arguments ...any) { trace = append(trace, fmt.Sprintf(format, arguments...)) }
	calls := 0
	var do func(in instruction)
	do = func(in instruction) {
		switch in.op {
		case opRequest:
			say("request %d", in.source)
			say("request %d = %d", in.source, m.request(in.other, in.source))
		case opRequested:
			say("requested %d = %t", in.source, m.requested(in.other, in.source))
		case opRegister:
			say("register %d with %d", in.registration, in.source)
			result := m.register(in.other, in.registration, in.source, func() {
				say("callback %d {", in.registration)
				if calls++; calls < programCalls {
					for _, in := range inside[in.registration] {
						do(in)
					}
				}
				say("}")
			})
			say("register %d = %d", in.registration, result)
		case opDeregister:
			say("deregister %d = %d", in.registration, m.deregister(in.other, in.registration))
		}
	}
	for n := 0; len(data) > 0 && n < programLength; n++ {
		var in instruction
		in, data = decode(data)
		do(in)
	}
	for r := range programRegistrations {
		do(instruction{op: opDeregister, registration: r})
	}
	return trace
}

// Sequence plays the program in data on a pair of ends and on the model, which must tell the same story.
func Sequence(t *testing.T, pair Pair, memory Memory, data []byte) {
	h := newHarness(t, pair, memory)
	real := &endsMachine{h: h}
	for i := range real.sources {
		real.sources[i] = h.source()
	}
	require.Equal(t, execute(&model{}, data), execute(real, data))
	for _, s := range real.sources {
		require.Zero(t, s.Newest, "nothing is registered any more")
		require.Zero(t, s.Running)
		h.destroySource(s)
	}
}

// endsMachine runs a program on a pair of ends. Registrations are made anew for each use, of the memory that was freed last.
type endsMachine struct {
	h             *harness
	sources       [programSources]*cancel.SourceMemory
	registrations [programRegistrations]*cancel.RegistrationMemory // nil while idle
}

func (m *endsMachine) end(other bool) End {
	if other {
		return m.h.Requester
	}
	return m.h.Registrar
}

func (m *endsMachine) request(other bool, source int) int {
	return m.end(!other).Request(m.sources[source])
}

func (m *endsMachine) requested(other bool, source int) bool {
	return m.end(other).Requested(m.sources[source])
}

func (m *endsMachine) register(other bool, registration, source int, f func()) int {
	end := m.end(other)
	if r := m.registrations[registration]; r != nil {
		return end.Register(m.sources[source], r, end.Function(), 0) // must be refused
	}
	r := m.h.registration()
	m.registrations[registration] = r
	return m.h.registerBy(end, m.sources[source], r, f)
}

func (m *endsMachine) deregister(other bool, registration int) int {
	r := m.registrations[registration]
	if r == nil {
		r = m.h.registration()
	}
	m.registrations[registration] = nil
	result := m.end(other).Deregister(r)
	m.h.destroy(r)
	return result
}

// model is the contract in its plainest form: no memory, no threads, no lock.
type model struct {
	sources [programSources]struct {
		asked   bool
		waiting []int // oldest first
	}
	registrations [programRegistrations]struct {
		used   bool
		source int
		f      func()
	}
}

func (m *model) requested(_ bool, source int) bool { return m.sources[source].asked }

func (m *model) request(_ bool, source int) int {
	s := &m.sources[source]
	if s.asked {
		return cancel.Already
	}
	s.asked = true
	for len(s.waiting) > 0 {
		newest := s.waiting[len(s.waiting)-1]
		s.waiting = s.waiting[:len(s.waiting)-1]
		m.registrations[newest].f()
	}
	return cancel.OK
}

func (m *model) register(_ bool, registration, source int, f func()) int {
	r, s := &m.registrations[registration], &m.sources[source]
	if r.used {
		return cancel.Busy
	}
	r.used, r.source, r.f = true, source, f
	if s.asked {
		f()
		return cancel.Already
	}
	s.waiting = append(s.waiting, registration)
	return cancel.OK
}

func (m *model) deregister(_ bool, registration int) int {
	r := &m.registrations[registration]
	if !r.used {
		return cancel.OK
	}
	r.used = false
	s := &m.sources[r.source]
	for i, waiting := range s.waiting {
		if waiting == registration {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			return cancel.OK
		}
	}
	return cancel.Already
}
