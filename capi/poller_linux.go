package capi

import (
	"weft/core"
	"weft/epoll"
)

// newPoller makes the poller of this system.
func newPoller() core.Poller { return epoll.New() }
