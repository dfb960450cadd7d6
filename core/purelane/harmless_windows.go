package purelane

import "golang.org/x/sys/windows"

// Harmless is a C function that may be called with anything, and does nothing: for tests of what a call costs.
func Harmless() (uintptr, error) {
	labs := windows.NewLazySystemDLL("msvcrt.dll").NewProc("labs")
	if err := labs.Find(); err != nil {
		return 0, err
	}
	return labs.Addr(), nil
}
