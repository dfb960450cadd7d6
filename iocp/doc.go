// Package iocp is the poller of Windows: [core.Poller] on a completion port, and the system calls of sockets for Go
// ([core.Sockets]).
//
// A call of an op begins a transfer, with the op's own words as its OVERLAPPED, and a packet at the port tells its end: package
// core's transfer.go says who may touch these words when. Calls on TCP sockets that succeed at once post no packet, where the
// socket's provider is the system's own; everything else does.
//
// The C lane waits at the same port by itself (capi/poll_windows.c); both keep the contract of core.Poller. On other systems the
// package is empty.
package iocp
