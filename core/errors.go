package core

// Error is a code of include/weft/c/error.h: 0 is success, the others are negative. A test in capi compares the two tables.
type Error int32

// The codes. Their texts say what they mean.
const (
	EInval        Error = -1
	EBadHandle    Error = -2
	EVersion      Error = -3
	EBusy         Error = -4
	EStopped      Error = -5
	ENotWorker    Error = -6
	ENotSup       Error = -7
	EExist        Error = -8
	EForked       Error = -9
	EPanic        Error = -10
	ENoMem        Error = -20
	ELimit        Error = -21
	ECanceled     Error = -30
	ETimedOut     Error = -31
	EClosed       Error = -32
	EEOF          Error = -33
	EConnRefused  Error = -40
	EConnReset    Error = -41
	EPipe         Error = -42
	ENotConn      Error = -43
	EAddrInUse    Error = -44
	EAddrNotAvail Error = -45
	EUnreach      Error = -46
	EAcces        Error = -47
	ENoEnt        Error = -48
	ENoSpc        Error = -49
	ENoAnswer     Error = -50
	ESystem       Error = -99
)

// errorTable has the name in C and the text of each code, in the order of the header.
var errorTable = []struct {
	Code Error
	Name string
	Text string
}{
	{EInval, "WEFT_EINVAL", "invalid argument"},
	{EBadHandle, "WEFT_EBADHANDLE", "handle is null, stale or of another kind"},
	{EVersion, "WEFT_EVERSION", "config structure is of an unknown size or version"},
	{EBusy, "WEFT_EBUSY", "op is already started, or another op waits in this direction"},
	{EStopped, "WEFT_ESTOPPED", "runtime is stopping or has stopped"},
	{ENotWorker, "WEFT_ENOTWORKER", "calling thread is not a worker of this runtime"},
	{ENotSup, "WEFT_ENOTSUP", "not supported for this kind of descriptor or on this system"},
	{EExist, "WEFT_EEXIST", "already exists, or descriptor is already registered"},
	{EForked, "WEFT_EFORKED", "process is a fork of the one that started the runtime"},
	{EPanic, "WEFT_EPANIC", "internal failure; the runtime must not be used any more"},
	{ENoMem, "WEFT_ENOMEM", "out of memory"},
	{ELimit, "WEFT_ELIMIT", "limit reached: threads, runtimes or open descriptors"},
	{ECanceled, "WEFT_ECANCELED", "operation was cancelled"},
	{ETimedOut, "WEFT_ETIMEDOUT", "time ran out"},
	{EClosed, "WEFT_ECLOSED", "descriptor was closed while the operation waited"},
	{EEOF, "WEFT_EOF", "end of stream before the requested amount"},
	{EConnRefused, "WEFT_ECONNREFUSED", "connection refused"},
	{EConnReset, "WEFT_ECONNRESET", "connection reset by peer"},
	{EPipe, "WEFT_EPIPE", "peer no longer reads"},
	{ENotConn, "WEFT_ENOTCONN", "socket is not connected"},
	{EAddrInUse, "WEFT_EADDRINUSE", "address is in use"},
	{EAddrNotAvail, "WEFT_EADDRNOTAVAIL", "address is not available on this machine"},
	{EUnreach, "WEFT_EUNREACH", "network or host is unreachable"},
	{EAcces, "WEFT_EACCES", "permission denied"},
	{ENoEnt, "WEFT_ENOENT", "no such file, host or service"},
	{ENoSpc, "WEFT_ENOSPC", "no space left on the device"},
	{ENoAnswer, "WEFT_ENOANSWER", "no name server gave an answer"},
	{ESystem, "WEFT_ESYSTEM", "system call failed; see os_error"},
}

// Error implements error with the text of the C table.
func (e Error) Error() string {
	for _, row := range errorTable {
		if row.Code == e {
			return "weft: " + row.Text
		}
	}
	return "weft: unknown error"
}

// ErrorNames tells the name in C and the text of every code.
func ErrorNames() map[Error][2]string {
	names := make(map[Error][2]string, len(errorTable))
	for _, row := range errorTable {
		names[row.Code] = [2]string{row.Name, row.Text}
	}
	return names
}
