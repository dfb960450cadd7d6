package purehost

import "syscall"

func thread() uint64 { return uint64(syscall.Gettid()) }
