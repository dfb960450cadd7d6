package walls

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	block = regexp.MustCompile("(?s)```(\\w*)\n(.*?)```")
	link  = regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)]*)?\)`)
)

// TestReadmeExample: the first C++ block of README.md is cut from an example that is built and run.
func TestReadmeExample(t *testing.T) {
	const example = "examples/cpp/hello/main.cpp"
	for _, match := range block.FindAllStringSubmatch(read(t, "README.md"), -1) {
		if match[1] == "cpp" {
			if !strings.Contains(read(t, example), match[2]) {
				t.Errorf("the example of README.md is not a part of %s", example)
			}
			if lines := strings.Count(match[2], "\n"); lines < 10 || lines > 25 {
				t.Errorf("the example of README.md has %d lines", lines)
			}
			return
		}
	}
	t.Error("README.md has no C++ example")
}

// TestLinks: what a document links to is there.
func TestLinks(t *testing.T) {
	links := 0
	for _, name := range tree(t, withSuffix(".md")) {
		for _, match := range link.FindAllStringSubmatch(read(t, name), -1) {
			links++
			if target := path.Join(path.Dir(name), match[1]); !exists(target) {
				t.Errorf("%s: there is no %s", name, match[1])
			}
		}
	}
	if links == 0 {
		t.Error("no links found: the test does not see them")
	}
}

// TestDecisions: the index of docs/decisions lists every page, and every page answers the four questions.
func TestDecisions(t *testing.T) {
	index := read(t, "docs/decisions/README.md")
	for _, name := range tree(t, func(name string) bool { return path.Dir(name) == "docs/decisions" && path.Ext(name) == ".md" }) {
		if path.Base(name) == "README.md" {
			continue
		}
		if !strings.Contains(index, "("+path.Base(name)+")") {
			t.Errorf("docs/decisions/README.md does not list %s", path.Base(name))
		}
		for _, heading := range []string{"**Question.**", "**Choice.**", "**Rejected.**", "**What would change it.**"} {
			if !strings.Contains(read(t, name), "\n"+heading) {
				t.Errorf("%s has no %q", name, heading)
			}
		}
	}
}
