// SPDX-License-Identifier: MIT
//
// weft/error.hpp: the category agrees with the C table and with the standard's words, and each code has its exception.
#include <doctest/doctest.h>

#include <ostream>
#include <string>
#include <system_error>

#include <weft/error.hpp>

TEST_CASE("error: every code of the C table has its number, its text and the category") {
    int codes = 0;
#define CHECK_CODE(name, number, text)                                                                                           \
    {                                                                                                                            \
        const std::error_code code = static_cast<weft::errc>(number);                                                            \
        CHECK(code.value() == name);                                                                                             \
        CHECK(code.category() == weft::category());                                                                              \
        CHECK(code.message() == std::string(text));                                                                              \
        ++codes;                                                                                                                 \
    }
    WEFT_ERROR_TABLE(CHECK_CODE)
#undef CHECK_CODE
    CHECK(codes >= 25);
    CHECK(std::string(weft::category().name()) == "weft");
}

TEST_CASE("error: every code has an enumerator") {
    // A code without one would make this switch incomplete, which -Wall reports.
    const auto named = [](weft::errc code) {
        switch (code) {
#define NAME_CODE(name, number, text) case static_cast<weft::errc>(name):
            WEFT_ERROR_TABLE(NAME_CODE)
#undef NAME_CODE
            return true;
        }
        return false;
    };
    CHECK(named(weft::errc::cancelled));
    CHECK(weft::errc::invalid_argument == static_cast<weft::errc>(WEFT_EINVAL));
    CHECK(weft::errc::system_failure == static_cast<weft::errc>(WEFT_ESYSTEM));
}

TEST_CASE("error: codes compare with the standard's conditions") {
    const std::error_code refused = weft::errc::connection_refused;
    CHECK(refused == std::errc::connection_refused);
    CHECK(refused != std::errc::connection_reset);
    CHECK(refused == weft::errc::connection_refused);
    const std::error_code cancelled = weft::errc::cancelled;
    CHECK(cancelled == std::errc::operation_canceled);
    const std::error_code stopped = weft::errc::stopped; // the standard has no word for it
    CHECK(stopped.default_error_condition().category() == weft::category());
}

TEST_CASE("error: what is thrown for a code") {
    CHECK_THROWS_AS(weft::throw_error(WEFT_ECANCELED, "x"), weft::operation_cancelled);
    CHECK_THROWS_AS(weft::throw_error(WEFT_ESTOPPED, "x"), weft::runtime_stopped);
    CHECK_THROWS_AS(weft::throw_error(WEFT_ETIMEDOUT, "x"), weft::timed_out);
    try {
        weft::throw_error(WEFT_ECONNREFUSED, "connect to nobody", 111);
    } catch (const weft::timed_out &) {
        CHECK(false);
    } catch (const std::system_error &e) {
        CHECK(e.code() == weft::errc::connection_refused);
        CHECK(std::string(e.what()).find("connect to nobody") != std::string::npos);
        CHECK(std::string(e.what()).find("connection refused") != std::string::npos);
        CHECK(static_cast<const weft::error &>(e).os_error() == 111);
    }
    CHECK(weft::operation_cancelled().code() == weft::errc::cancelled);
    CHECK(weft::runtime_stopped().code() == weft::errc::stopped);
    CHECK(weft::timed_out().code() == weft::errc::timed_out);
    CHECK(weft::timed_out().os_error() == 0);
}
