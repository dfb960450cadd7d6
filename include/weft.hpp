// SPDX-License-Identifier: MIT
//
// weft.hpp: the whole C++ layer of weft. Header-only, C++20, on top of the C interface (weft.h).
//
// Start reading at run.hpp and task.hpp; docs/guide.md is the user's guide.
#ifndef WEFT_HPP
#define WEFT_HPP

#include "weft.h"

#include "weft/async_scope.hpp"
#include "weft/blocking.hpp"
#include "weft/buffer.hpp"
#include "weft/cancellation.hpp"
#include "weft/channel.hpp"
#include "weft/concepts.hpp"
#include "weft/endpoint.hpp"
#include "weft/error.hpp"
#include "weft/event.hpp"
#include "weft/file.hpp"
#include "weft/fork_join.hpp"
#include "weft/inline_scheduler.hpp"
#include "weft/mutex.hpp"
#include "weft/post.hpp"
#include "weft/resolve.hpp"
#include "weft/resume_on.hpp"
#include "weft/run.hpp"
#include "weft/runtime.hpp"
#include "weft/schedule_on.hpp"
#include "weft/scheduler.hpp"
#include "weft/sleep.hpp"
#include "weft/spawn.hpp"
#include "weft/stall.hpp"
#include "weft/sync_wait.hpp"
#include "weft/task.hpp"
#include "weft/tcp_listener.hpp"
#include "weft/tcp_stream.hpp"
#include "weft/this_task.hpp"
#include "weft/timeout.hpp"
#include "weft/udp_socket.hpp"
#include "weft/when_all.hpp"
#include "weft/when_any.hpp"
#include "weft/with_token.hpp"

#endif
