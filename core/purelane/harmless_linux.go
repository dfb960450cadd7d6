package purelane

import "github.com/ebitengine/purego"

// Harmless is a C function that may be called with anything, and does nothing: for tests of what a call costs.
func Harmless() (uintptr, error) {
	libc, err := purego.Dlopen("libc.so.6", purego.RTLD_NOW)
	if err != nil {
		return 0, err
	}
	return purego.Dlsym(libc, "labs")
}
