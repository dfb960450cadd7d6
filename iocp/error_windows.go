package iocp

import (
	"golang.org/x/sys/windows"

	"weft/core"
)

// ErrorOf translates an error number of the system, Winsock's or the kernel's: 0 for nil, ESystem when the table has no closer one. Twin:
// weft_error_from_os in capi/error_windows.c; a test compares them for every number.
func ErrorOf(err error) core.Error {
	switch err {
	case nil, windows.Errno(0):
		return 0
	case windows.WSAEINVAL, windows.WSAEMSGSIZE, windows.WSAEFAULT, windows.ERROR_INVALID_PARAMETER, windows.ERROR_INVALID_HANDLE, windows.ERROR_INVALID_NAME:
		return core.EInval
	case windows.WSAEOPNOTSUPP, windows.WSAEAFNOSUPPORT, windows.WSAEPROTONOSUPPORT, windows.WSAEPROTOTYPE, windows.WSAESOCKTNOSUPPORT,
		windows.WSAENOTSOCK, windows.ERROR_NOT_SUPPORTED, windows.ERROR_INVALID_FUNCTION, windows.ERROR_CALL_NOT_IMPLEMENTED:
		return core.ENotSup
	case windows.ERROR_FILE_NOT_FOUND, windows.ERROR_PATH_NOT_FOUND, windows.WSAHOST_NOT_FOUND:
		return core.ENoEnt
	case windows.ERROR_FILE_EXISTS, windows.ERROR_ALREADY_EXISTS:
		return core.EExist
	case windows.ERROR_NOT_ENOUGH_MEMORY, windows.ERROR_OUTOFMEMORY, windows.ERROR_NO_SYSTEM_RESOURCES, windows.ERROR_NONPAGED_SYSTEM_RESOURCES,
		windows.ERROR_WORKING_SET_QUOTA, windows.WSAENOBUFS:
		return core.ENoMem
	case windows.WSAEMFILE, windows.ERROR_TOO_MANY_OPEN_FILES:
		return core.ELimit
	case windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL:
		return core.ENoSpc
	case windows.ERROR_OPERATION_ABORTED, windows.WSAEINTR, windows.WSA_E_CANCELLED, windows.WSAECANCELLED:
		return core.ECanceled
	case windows.WSAETIMEDOUT, windows.ERROR_SEM_TIMEOUT:
		return core.ETimedOut
	case windows.WSAECONNREFUSED, windows.ERROR_CONNECTION_REFUSED:
		return core.EConnRefused
	case windows.WSAECONNRESET, windows.WSAECONNABORTED, windows.WSAENETRESET, windows.ERROR_NETNAME_DELETED, windows.ERROR_CONNECTION_ABORTED:
		return core.EConnReset
	case windows.WSAESHUTDOWN, windows.WSAEDISCON, windows.ERROR_BROKEN_PIPE, windows.ERROR_NO_DATA:
		return core.EPipe
	case windows.WSAENOTCONN, windows.ERROR_PIPE_NOT_CONNECTED:
		return core.ENotConn
	case windows.WSAEADDRINUSE:
		return core.EAddrInUse
	case windows.WSAEADDRNOTAVAIL:
		return core.EAddrNotAvail
	case windows.WSAENETUNREACH, windows.WSAEHOSTUNREACH, windows.WSAENETDOWN, windows.WSAEHOSTDOWN, windows.ERROR_NETWORK_UNREACHABLE,
		windows.ERROR_HOST_UNREACHABLE, windows.ERROR_PORT_UNREACHABLE, windows.ERROR_PROTOCOL_UNREACHABLE:
		return core.EUnreach
	case windows.WSAEACCES, windows.ERROR_ACCESS_DENIED, windows.ERROR_SHARING_VIOLATION, windows.ERROR_LOCK_VIOLATION,
		windows.ERROR_WRITE_PROTECT, windows.ERROR_PRIVILEGE_NOT_HELD:
		return core.EAcces
	}
	return core.ESystem
}

// errnoOf is the error number that the system's own functions would tell of a transfer that ended with a status: Winsock's for what
// happens to connections, which the kernel's translation calls otherwise.
func errnoOf(status uint32) windows.Errno {
	switch windows.NTStatus(status) {
	case windows.STATUS_CANCELLED, windows.STATUS_HANDLES_CLOSED:
		return windows.ERROR_OPERATION_ABORTED
	case windows.STATUS_BUFFER_OVERFLOW: // of a datagram that was to be sent
		return windows.WSAEMSGSIZE
	case windows.STATUS_CONNECTION_REFUSED, windows.STATUS_REMOTE_NOT_LISTENING:
		return windows.WSAECONNREFUSED
	case windows.STATUS_CONNECTION_RESET, windows.STATUS_CONNECTION_DISCONNECTED, windows.STATUS_REMOTE_DISCONNECT:
		return windows.WSAECONNRESET
	case windows.STATUS_CONNECTION_ABORTED, windows.STATUS_LOCAL_DISCONNECT, windows.STATUS_TRANSACTION_ABORTED:
		return windows.WSAECONNABORTED
	case windows.STATUS_GRACEFUL_DISCONNECT:
		return windows.WSAEDISCON
	case windows.STATUS_IO_TIMEOUT, windows.STATUS_LINK_TIMEOUT, windows.STATUS_TIMEOUT:
		return windows.WSAETIMEDOUT
	case windows.STATUS_NETWORK_UNREACHABLE, windows.STATUS_BAD_NETWORK_PATH:
		return windows.WSAENETUNREACH
	case windows.STATUS_HOST_UNREACHABLE, windows.STATUS_PROTOCOL_UNREACHABLE, windows.STATUS_PORT_UNREACHABLE:
		return windows.WSAEHOSTUNREACH
	case windows.STATUS_ADDRESS_ALREADY_EXISTS, windows.STATUS_ADDRESS_ALREADY_ASSOCIATED:
		return windows.WSAEADDRINUSE
	case windows.STATUS_INVALID_CONNECTION:
		return windows.WSAENOTCONN
	case windows.STATUS_INSUFFICIENT_RESOURCES, windows.STATUS_NO_MEMORY, windows.STATUS_PAGEFILE_QUOTA, windows.STATUS_COMMITMENT_LIMIT,
		windows.STATUS_WORKING_SET_QUOTA, windows.STATUS_QUOTA_EXCEEDED:
		return windows.WSAENOBUFS
	}
	return dosError(status)
}
