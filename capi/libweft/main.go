// Command libweft is the library: package capi, built with -buildmode=c-shared or c-archive.
package main

import _ "weft/capi"

func main() {}
