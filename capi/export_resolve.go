package capi

/*
#include "resolve.h"
*/
import "C"

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"weft/core"
)

// lookup is a name that is being looked up.
type lookup struct {
	slot   uint32
	cancel context.CancelFunc
}

// lookups has every lookup by the address of its op. A lookup leaves it before its op is handed back.
var lookups struct {
	mu      sync.Mutex
	running map[uintptr]lookup
}

// question is what a lookup asks, in Go's memory.
type question struct {
	host, service string
	server        netip.AddrPort // not valid: those of the system
}

//export weftgo_resolve
func weftgo_resolve(id C.uint64_t, op *C.weft_resolve_op, host, service *C.char, server *C.weft_endpoint, timeout C.int64_t) (code C.int) {
	defer guard(&code)
	e := find(uint64(id))
	if e == nil {
		return C.WEFT_EBADHANDLE
	}
	q := question{host: C.GoString(host)}
	if service != nil {
		q.service = C.GoString(service)
	}
	if server != nil {
		q.server = addressOf(server)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if timeout != C.WEFT_NEVER {
		ctx, cancel = context.WithTimeout(context.Background(), time.Duration(max(timeout, 0)))
	}
	key := uintptr(unsafe.Pointer(op))
	lookups.mu.Lock()
	defer lookups.mu.Unlock()
	// stop sets the state and then takes the mutex: it finds this lookup, or this finds the state.
	if e.runtime.Shared().State.Load() != core.StateRunning {
		cancel()
		return C.WEFT_ESTOPPED
	}
	if lookups.running == nil {
		lookups.running = map[uintptr]lookup{}
	}
	lookups.running[key] = lookup{slot: e.slot, cancel: cancel}
	if C.resolve_requested(op) {
		cancel()
	}
	go func() {
		found, err := q.answer(ctx)
		status := resolveCode(ctx, err)
		lookups.mu.Lock()
		delete(lookups.running, key)
		lookups.mu.Unlock()
		cancel()
		C.resolve_complete(op, status, unsafe.SliceData(found), C.uint32_t(len(found)))
	}()
	return C.WEFT_OK
}

//export weftgo_resolve_cancel
func weftgo_resolve_cancel(op *C.weft_resolve_op) {
	lookups.mu.Lock()
	defer lookups.mu.Unlock()
	if l, ok := lookups.running[uintptr(unsafe.Pointer(op))]; ok {
		l.cancel()
	}
}

// cancelLookups cancels those of a runtime that stops.
func cancelLookups(slot uint32) {
	lookups.mu.Lock()
	defer lookups.mu.Unlock()
	for _, l := range lookups.running {
		if l.slot == slot {
			l.cancel()
		}
	}
}

// answer looks the question up.
func (q question) answer(ctx context.Context) ([]C.weft_endpoint, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// Go's own resolver: getaddrinfo could neither be cancelled nor be linked into an archive. On Windows the system's, which alone knows
	// what is configured; to be linked it needs nothing, and when cancelled it is left to itself.
	resolver := &net.Resolver{PreferGo: runtime.GOOS != "windows" || q.server.IsValid()}
	if q.server.IsValid() {
		resolver.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, q.server.String())
		}
	}
	port := 0
	if q.service != "" {
		var err error
		if port, err = resolver.LookupPort(ctx, "tcp", q.service); err != nil {
			return nil, err
		}
	}
	addresses := []netip.Addr{{}}
	var err error
	if addresses[0], err = netip.ParseAddr(q.host); err != nil { // a numeric one has a zone, which the resolver would drop
		if addresses, err = resolver.LookupNetIP(ctx, "ip", q.host); err != nil {
			return nil, err
		}
	}
	found := make([]C.weft_endpoint, len(addresses))
	for i, address := range addresses {
		found[i] = endpointOf(address.Unmap(), port)
	}
	return found, nil
}

// resolveCode translates what a lookup has failed with.
func resolveCode(ctx context.Context, err error) C.int {
	var dns *net.DNSError
	var address *net.AddrError
	switch {
	case err == nil:
		return C.WEFT_OK
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return C.WEFT_ETIMEDOUT
	case ctx.Err() != nil:
		return C.WEFT_ECANCELED
	case errors.As(err, &dns) && dns.IsNotFound, errors.As(err, &address):
		return C.WEFT_ENOENT
	}
	return C.WEFT_ENOANSWER
}

func endpointOf(address netip.Addr, port int) C.weft_endpoint {
	endpoint := C.weft_endpoint{family: C.WEFT_IPV6, port: C.uint16_t(port)}
	if address.Is4() {
		endpoint.family = C.WEFT_IPV4
	}
	for i, b := range address.AsSlice() {
		endpoint.address[i] = C.uint8_t(b)
	}
	if zone := address.Zone(); zone != "" {
		if number, err := strconv.ParseUint(zone, 10, 32); err == nil {
			endpoint.scope = C.uint32_t(number)
		} else if i, err := net.InterfaceByName(zone); err == nil {
			endpoint.scope = C.uint32_t(i.Index)
		}
	}
	return endpoint
}

func addressOf(endpoint *C.weft_endpoint) netip.AddrPort {
	var bytes [16]byte
	for i := range bytes {
		bytes[i] = byte(endpoint.address[i])
	}
	address := netip.AddrFrom4([4]byte(bytes[:4]))
	if endpoint.family == C.WEFT_IPV6 {
		address = netip.AddrFrom16(bytes)
		if endpoint.scope != 0 {
			address = address.WithZone(strconv.FormatUint(uint64(endpoint.scope), 10))
		}
	}
	return netip.AddrPortFrom(address, uint16(endpoint.port))
}
