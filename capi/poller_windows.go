package capi

import (
	"weft/core"
	"weft/iocp"
)

// newPoller makes the poller of this system.
func newPoller() core.Poller { return iocp.New() }
