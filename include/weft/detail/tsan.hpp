// SPDX-License-Identifier: MIT
//
// What the sanitizers must know. The library itself is not instrumented, so ThreadSanitizer cannot see that its queues
// order the thread that hands a coroutine over before the thread that resumes it: in such builds every handover goes
// through an op, announced with tsan_release and accepted with tsan_acquire on the op's address. Layouts are the same
// in all builds.
#ifndef WEFT_DETAIL_TSAN_HPP
#define WEFT_DETAIL_TSAN_HPP

#if defined(__has_feature)
#define WEFT_DETAIL_HAS_FEATURE(x) __has_feature(x)
#else
#define WEFT_DETAIL_HAS_FEATURE(x) 0
#endif

#if defined(__SANITIZE_THREAD__) || WEFT_DETAIL_HAS_FEATURE(thread_sanitizer)
#define WEFT_DETAIL_TSAN 1
extern "C" void __tsan_acquire(void *);
extern "C" void __tsan_release(void *);
#else
#define WEFT_DETAIL_TSAN 0
#endif

// Builds that find misuse of memory by looking at each allocation: a pool would blind them.
#if WEFT_DETAIL_TSAN || defined(__SANITIZE_ADDRESS__) || WEFT_DETAIL_HAS_FEATURE(address_sanitizer) ||                           \
    WEFT_DETAIL_HAS_FEATURE(memory_sanitizer) || WEFT_DETAIL_HAS_FEATURE(hwaddress_sanitizer)
#define WEFT_DETAIL_CHECKED_MEMORY 1
#else
#define WEFT_DETAIL_CHECKED_MEMORY 0
#endif

namespace weft::detail {

inline void tsan_release([[maybe_unused]] void *what) noexcept {
#if WEFT_DETAIL_TSAN
    __tsan_release(what);
#endif
}

inline void tsan_acquire([[maybe_unused]] void *what) noexcept {
#if WEFT_DETAIL_TSAN
    __tsan_acquire(what);
#endif
}

} // namespace weft::detail

#endif
