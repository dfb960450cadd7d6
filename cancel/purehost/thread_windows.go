package purehost

import "golang.org/x/sys/windows"

func thread() uint64 { return uint64(windows.GetCurrentThreadId()) }
