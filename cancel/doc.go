// Package cancel asks work to end early: sources, tokens and registrations, on memory that Go and C share.
//
// A source is requested once. Whoever holds it, or its token, registers callbacks, which run on the requester's thread,
// newest first; a registration that comes after the request runs at once, on the registering thread. Deregistering waits
// for a callback that runs on another thread and never for itself, so that afterwards memory which the callback uses can go.
// include/weft/c/cancel.h is the contract. This package is the Go end of it and capi/cancel.c the C end: the same
// steps on the same words, so that either may meet the other at every step. canceltest holds both to one table of
// scenarios; docs/models/cancel.pml is the model of the steps.
//
// # Words and who may touch them
//
//	source.State           atomic, any thread: bit requested (set once, never cleared), bit locked (a spin lock)
//	source.Newest          under the lock: registrations that wait for a request, newest first
//	source.Running         under the lock: registrations whose callback runs now, on whatever thread
//	registration.Callback  immutable while registered (Context too)
//	registration.Source    the registrant's: 0 exactly while the registration is idle
//	registration.State     under the source's lock: idle -> waiting -> running -> called -> idle
//	registration.Previous  under the source's lock (Next too): neighbours in Newest or Running
//	registration.Thread    under the source's lock: who runs the callback
//
// # Why it holds
//
//   - Request or registration, whichever takes the lock second sees the first: no callback is lost, none runs twice.
//   - A callback runs between two holds of the lock, and its registration is on Running in between. Deregistering finds it
//     there and waits until it is gone, or, on the thread that runs it, takes it off and does not wait.
//   - Whoever ran a callback does not touch its registration again before it has found it on Running, with its own
//     thread. The address alone would not do: the memory may by now be a registration that runs on another thread.
//   - Taking a finished registration off and choosing the next one are one hold of the lock, and its end is the
//     last access. So when nothing is left the source may go, although its requester has not returned.
//
// # Threads
//
// "This thread" must mean the same at both ends, also when a C callback calls into Go and that deregisters. A goroutine
// is locked to its thread while it runs callbacks, and Host.Thread gives the number that the C end uses. Deregister asks for
// it only when it finds the callback running, and stays on that thread for the comparison.
//
// # Waiting
//
// For the lock and for a running callback alike: spin, then yield, then sleep 50 us to 1 ms. A futex would wake sooner, but the
// waker would touch memory that the other end may free by then, and callbacks are short.
package cancel
