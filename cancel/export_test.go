package cancel

// What the tests, which live outside because the host does, need from inside.

func RegistrationForTest() *RegistrationMemory { return registrations.get() }
func ReleaseForTest(r *RegistrationMemory)     { registrations.put(r) }
func MemoryForTest(s *Source) *SourceMemory    { return s.memory }
