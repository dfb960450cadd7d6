/* SPDX-License-Identifier: MIT
 *
 * weft/c/resolve.h: looking names up, without holding a worker.
 *
 * Names are resolved by Go's own resolver: /etc/hosts and the name servers of /etc/resolv.conf, in the order of /etc/nsswitch.conf;
 * not by the C library and its modules. Addresses come in the order in which they should be tried (RFC 6724). A start
 * returns as those of file.h do. The rules of op.h hold.
 */
#ifndef WEFT_C_RESOLVE_H
#define WEFT_C_RESOLVE_H

#include "io.h"
#include "timer.h"

typedef struct weft_resolve_op {
    weft_op op;                  /* caller: run and context */
    int32_t status;              /* result: WEFT_OK or why it failed */
    uint32_t count;              /* result: addresses found, which may be more than capacity */
    weft_endpoint *endpoints;    /* caller: where to write them; belongs to the op until its result */
    uint32_t capacity;           /* caller: room there */
    uint32_t state_;             /* weft's */
    const weft_endpoint *server; /* caller: name server to ask instead of the system's, or NULL; only read at the start */
    void *runtime_;              /* weft's */
    uint64_t spare_[2];          /* weft's */
} weft_resolve_op;

#ifdef __cplusplus
extern "C" {
#endif

/** Looks up a host and a service.
 *  Params:   runtime     whose worker runs op.run
 *            op          not NULL, idle; endpoints not NULL unless capacity is 0
 *            host        a name, or a numeric address ("::1", "fe80::1%eth0"); not NULL, not empty; copied
 *            service     a name ("http") or a number; NULL or empty: port 0; copied
 *            timeout_ns  when to give up; WEFT_NEVER: when the resolver does
 *  Returns:  WEFT_OK; 1; WEFT_EINVAL; WEFT_EBADHANDLE; WEFT_EBUSY; WEFT_ESTOPPED; WEFT_EFORKED.
 *  Results:  WEFT_OK; WEFT_ENOENT (no such host or service); WEFT_ENOANSWER (no name server was reached, or it failed);
 *            WEFT_ETIMEDOUT; WEFT_ECANCELED.
 *  Threads:  any; one crossing to Go; never blocks, never calls back.
 *  Cancel:   weft_resolve_cancel, and stop.
 *  Since:    0.1 */
WEFT_API int weft_resolve(weft_runtime runtime, weft_resolve_op *op, const char *host, const char *service,
                          int64_t timeout_ns) WEFT_NOEXCEPT;

/** Asks a lookup to end early. Honoured before the start, and while it is under way. It still completes exactly once.
 *  Params:   op  not NULL
 *  Returns:  WEFT_OK (the request was noted); 1 (it had completed or had been requested); WEFT_EINVAL; WEFT_EFORKED.
 *  Threads:  any, as long as the caller knows that the memory is still there; one crossing to Go; never calls back.
 *  Since:    0.1 */
WEFT_API int weft_resolve_cancel(weft_resolve_op *op) WEFT_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
