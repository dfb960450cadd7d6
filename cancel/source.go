package cancel

// Source is a cancellation source that Go owns. NewSource makes it, Close ends it.
type Source struct {
	memory *SourceMemory // immutable until Close
	parent Registration  // with which a child follows its parent
}

// NewSource makes a source that has not been requested.
func NewSource() *Source { return &Source{memory: sources.get()} }

// NewChild makes a source that is requested when its parent is, at once if the parent has been already; and by itself
// without its parent noticing. Close it before the parent.
func NewChild(parent Token) *Source {
	s := NewSource()
	s.parent.Register(parent, func() { s.Request() })
	return s
}

// Request asks everything that holds a token of this source to end. The first call runs the registered callbacks, newest
// first, and tells true when they are done; every other tells false at once.
func (s *Source) Request() bool { return s.memory.Request() == OK }

// Requested tells whether the source, or the parent of a child, was requested.
func (s *Source) Requested() bool { return s.memory.Requested() }

// Token gives the token to hand to those who should listen.
func (s *Source) Token() Token { return Token{s.memory} }

// Close gives the source's memory back. It must have no registrations left and nobody may be inside Request: Close panics if
// it finds one. The source and its tokens are not to be used any more.
func (s *Source) Close() {
	s.parent.Deregister()
	bits := s.memory.lock(0)
	busy := s.memory.Newest|s.memory.Running != 0
	s.memory.unlock(bits)
	if busy {
		panic("cancel: source closed while it has registrations")
	}
	sources.put(s.memory)
	s.memory = nil
}
