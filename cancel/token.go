package cancel

// Token is the side of a source that listens. The zero Token is never requested.
type Token struct {
	memory *SourceMemory
}

// TokenAt makes a token of a weft_cancel_token, the address of a source; 0 gives the zero Token.
func TokenAt(address uintptr) Token { return Token{at[SourceMemory](uint64(address))} }

// Address gives the token as C knows it. It is good until the source is closed.
func (t Token) Address() uintptr { return uintptr(addressOf(t.memory)) }

// Requested tells whether the source was requested.
func (t Token) Requested() bool { return t.memory.Requested() }
