// Package epoll is the poller of Linux: [core.Poller] on epoll, and the system calls of sockets for Go ([core.Sockets]).
//
// A descriptor is registered once, edge-triggered, in both directions, and never modified: in the steady state waiting costs
// no epoll_ctl. The data of an event is the index of the descriptor's record and its generation, so an event that comes late
// is recognised.
//
// The C lane waits on the same epoll descriptor by itself (capi/poll_linux.c); both keep the contract of core.Poller. On
// other systems the package is empty.
package epoll
