package walls

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

type function struct {
	header     string
	doc        string
	parameters []string
	void       bool
}

var (
	declaration = regexp.MustCompile(`(?s)(?:/\*\*((?:[^*]|\*[^/])*)\*/\s*)?WEFT_API\s+([^;]*?)\b(weft_\w+)\s*\(([^;]*)\)\s*WEFT_NOEXCEPT\s*;`)
	inheritance = regexp.MustCompile(`\bweft_\w+`)
	fieldNames  = regexp.MustCompile(`(?m)^\s*\*?\s+((?:(?:Params|Returns|Results|Owns|Threads|Cancel|Since)(?:, )?)+):\s`)
)

// functions reads the declarations of the C headers, by name.
func functions(t *testing.T) map[string]function {
	t.Helper()
	found := map[string]function{}
	declared := 0
	for _, name := range tree(t, func(name string) bool { return strings.HasPrefix(name, "include/weft/c/") }) {
		text := read(t, name)
		declared += strings.Count(text, "\nWEFT_API ")
		for _, match := range declaration.FindAllStringSubmatch(text, -1) {
			f := function{header: name, doc: match[1], void: strings.TrimSpace(match[2]) == "void"}
			for _, parameter := range strings.Split(match[4], ",") {
				words := wordStart.FindAllString(parameter, -1)
				// A handle called by its type's noun says it all: weft_runtime runtime.
				if n := len(words); n > 1 && (strings.Contains(parameter, "*") || words[n-2] != "weft_"+words[n-1]) {
					f.parameters = append(f.parameters, words[len(words)-1])
				}
			}
			found[match[3]] = f
		}
	}
	if len(found) != declared {
		t.Errorf("read %d functions of %d", len(found), declared)
	}
	return found
}

// fields collects the fields of a block, with those of the functions that its sentence or its "as weft_..." names.
func fields(name string, all map[string]function, has map[string]bool, text *strings.Builder, seen map[string]bool) {
	if seen[name] {
		return
	}
	seen[name] = true
	f := all[name]
	text.WriteString(f.doc)
	for _, match := range fieldNames.FindAllStringSubmatch(f.doc, -1) {
		for _, field := range strings.Split(match[1], ", ") {
			has[field] = true
		}
	}
	sentence, _, _ := strings.Cut(f.doc, "\n")
	for _, other := range inheritance.FindAllString(sentence, -1) {
		fields(other, all, has, text, seen)
	}
	for _, as := range regexp.MustCompile(`\bas (weft_\w+)`).FindAllStringSubmatch(f.doc, -1) {
		fields(as[1], all, has, text, seen)
	}
}

func firstField(doc string) int {
	if at := fieldNames.FindStringIndex(doc); at != nil {
		return at[0]
	}
	return len(doc)
}

// TestDocumented: the header is the manual. Each function has a sentence, tells each parameter, its results, its threads, and
// since when it is there; what is the same as another function's may be told there.
func TestDocumented(t *testing.T) {
	all := functions(t)
	for name, f := range all {
		if strings.TrimSpace(f.doc) == "" {
			t.Errorf("%s: %s has no doc block", f.header, name)
			continue
		}
		summary := strings.Join(strings.Fields(strings.ReplaceAll(f.doc[:firstField(f.doc)], "*", " ")), " ")
		if len(strings.Fields(summary)) < 3 || !strings.HasSuffix(summary, ".") {
			t.Errorf("%s: the block of %s does not begin with a sentence", f.header, name)
		}
		if !regexp.MustCompile(`Since: +\d+\.\d+`).MatchString(f.doc) {
			t.Errorf("%s: %s does not tell since when", f.header, name)
		}
		has, text := map[string]bool{}, new(strings.Builder)
		fields(name, all, has, text, map[string]bool{})
		if !has["Threads"] {
			t.Errorf("%s: %s does not tell which threads may call it", f.header, name)
		}
		if !f.void && !has["Returns"] && !has["Results"] && !strings.Contains(text.String(), "Tells ") {
			t.Errorf("%s: %s does not tell what it returns", f.header, name)
		}
		for _, parameter := range f.parameters {
			if !regexp.MustCompile(`\b` + parameter + `\b`).MatchString(text.String()) {
				t.Errorf("%s: %s does not tell its parameter %s", f.header, name, parameter)
			}
		}
	}
}

// TestGuards: include guards are made from the path.
func TestGuards(t *testing.T) {
	for _, name := range tree(t, func(name string) bool { return strings.HasPrefix(name, "include/") }) {
		guard := strings.ToUpper(strings.NewReplacer("/", "_", ".", "_").Replace(strings.TrimPrefix(name, "include/")))
		if text := read(t, name); !strings.Contains(text, "#ifndef "+guard+"\n#define "+guard+"\n") {
			t.Errorf("%s: its guard is not %s", name, guard)
		}
	}
}

// TestUmbrellas: weft.h and weft.hpp include every header of their language that is not a detail.
func TestUmbrellas(t *testing.T) {
	umbrellas := map[string]string{".h": read(t, "include/weft.h"), ".hpp": read(t, "include/weft.hpp")}
	for _, name := range tree(t, func(name string) bool { return strings.HasPrefix(name, "include/weft/") }) {
		name = strings.TrimPrefix(name, "include/")
		if !under(path.Dir(name), "weft/detail") && !strings.Contains(umbrellas[path.Ext(name)], `#include "`+name+`"`) {
			t.Errorf("weft%s does not include %s", path.Ext(name), name)
		}
	}
	if !strings.Contains(umbrellas[".hpp"], `#include "weft.h"`) {
		t.Error("weft.hpp does not include weft.h")
	}
}
