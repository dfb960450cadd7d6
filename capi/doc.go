// Package capi is the C side of weft: the lane, which runs ops in C, and the exports of include/weft.h. It translates and decides nothing:
// the public functions in *.c check their arguments and work on shared memory; what only Go can do goes through the weftgo_ exports, each of
// which finds its runtime by handle, guards against panics and counts one crossing.
package capi

/*
#cgo CFLAGS: -std=c11 -D_GNU_SOURCE -O2 -Wall -I${SRCDIR}/../include
#cgo linux LDFLAGS: -pthread
#cgo windows CFLAGS: -DWEFT_STATIC -D_WIN32_WINNT=0x0A00
#cgo windows LDFLAGS: -lsynchronization -lntdll -lws2_32 -lmswsock
*/
import "C"
