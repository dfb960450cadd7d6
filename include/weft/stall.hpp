// SPDX-License-Identifier: MIT
//
// weft/stall.hpp: reports of ops that hold up their worker; weft/c/stall.h tells what happens to everybody else meanwhile.
#ifndef WEFT_STALL_HPP
#define WEFT_STALL_HPP

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "c/stall.h"

namespace weft {

/// One stall: weft/c/stall.h explains each field. runtime_options::on_stall gets them.
using stall = weft_stall;

/// What held up the worker, as a person would write it: its name, demangled, or an address in its file; and where such
/// tasks are spawned, if that is known. Throws std::bad_alloc.
[[nodiscard]] inline std::string describe(const stall &what) {
    std::string text;
    if (what.name != nullptr) {
        int status = 0;
        // A coroutine's function has the name of the coroutine with something of the compiler's behind a dot.
        const std::string symbol = std::string(what.name).substr(0, std::string(what.name).find('.'));
        const std::unique_ptr<char, decltype(&std::free)> readable(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                                   &std::free);
        text = status == 0 ? readable.get() : what.name;
    } else {
        constexpr const char *digits = "0123456789abcdef";
        for (std::uint64_t rest = what.offset; rest != 0 || text.empty(); rest /= 16) {
            text.insert(text.begin(), digits[rest % 16]);
        }
        text = std::string(what.module != nullptr ? what.module : "?") + "+0x" + text;
    }
    if (what.file != nullptr) {
        text += std::string(", from ") + what.file + ":" + std::to_string(what.line);
    }
    return text;
}

} // namespace weft

#endif
