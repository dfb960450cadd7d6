package epoll

import (
	"golang.org/x/sys/unix"

	"weft/core"
)

// ErrorOf translates an error number of the system: 0 for nil, ESystem when the table has no closer one. Twin:
// weft_error_from_os in capi/io_linux.c; a test compares them for every number.
func ErrorOf(err error) core.Error {
	switch err {
	case nil:
		return 0
	case unix.EINVAL, unix.EMSGSIZE:
		return core.EInval
	case unix.EOPNOTSUPP, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.ENOTSOCK, unix.ENOSYS:
		return core.ENotSup
	case unix.ENOENT:
		return core.ENoEnt
	case unix.EEXIST:
		return core.EExist
	case unix.ENOMEM, unix.ENOBUFS:
		return core.ENoMem
	case unix.EMFILE, unix.ENFILE, unix.ENOSPC:
		return core.ELimit
	case unix.ECANCELED:
		return core.ECanceled
	case unix.ETIMEDOUT:
		return core.ETimedOut
	case unix.ECONNREFUSED:
		return core.EConnRefused
	case unix.ECONNRESET, unix.ECONNABORTED:
		return core.EConnReset
	case unix.EPIPE:
		return core.EPipe
	case unix.ENOTCONN:
		return core.ENotConn
	case unix.EADDRINUSE:
		return core.EAddrInUse
	case unix.EADDRNOTAVAIL:
		return core.EAddrNotAvail
	case unix.ENETUNREACH, unix.ENETDOWN, unix.EHOSTUNREACH, unix.EHOSTDOWN:
		return core.EUnreach
	case unix.EACCES, unix.EPERM:
		return core.EAcces
	}
	return core.ESystem
}
