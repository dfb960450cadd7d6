package walls

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// prose finds the comments of a Go, C or C++ file, each joined to one line. Line comments that follow each other are one.
func prose(text string) []string {
	text = regexp.MustCompile(`\n[ \t]*//`).ReplaceAllString(text, "\n//")
	text = regexp.MustCompile(`(//[^\n]*)\n//`).ReplaceAllString(text, "$1 ")
	text = regexp.MustCompile(`(//[^\n]*)\n//`).ReplaceAllString(text, "$1 ")
	var found []string
	for _, comment := range cComment.FindAllString(text, -1) {
		comment = regexp.MustCompile(`\n\s*\*?`).ReplaceAllString(comment, " ")
		found = append(found, strings.Join(strings.Fields(comment), " "))
	}
	return found
}

var (
	pairs = regexp.MustCompile(`(?i)\bpairs with:? (.*)`)
	// What looks like a name rather than like a word: with an underscore, a capital inside, or a dot or scope between names.
	looksLikeName = regexp.MustCompile(`[A-Za-z]\w*(?:(?:\.|::)[A-Za-z]\w*)+|[a-zA-Z]+\w*_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*`)
	fileName      = regexp.MustCompile(`^[\w/-]+\.(go|c|h|hpp|cpp|pml)$`)
	// Words that a sentence about an atomic has anyway, though one or another is also the name of a function.
	plain = []string{"the", "load", "loads", "store", "stores", "release", "acquire", "and", "in", "of", "by", "with", "which", "here", "there", "it", "its", "that", "exchange", "compare", "swap", "other", "fence", "barrier"}
)

// TestPairs: an atomic's argument names its partner, and the partner exists.
func TestPairs(t *testing.T) {
	sources := tree(t, withSuffix(".go", ".c", ".h", ".hpp", ".cpp"))
	known := map[string]bool{}
	for _, name := range sources {
		identifiers(read(t, name), known)
	}
	var files []string
	for _, name := range tree(t, code) {
		files = append(files, name, path.Base(name))
	}
	arguments := 0
	for _, name := range sources {
		if under(name, "tests") {
			continue
		}
		for _, comment := range prose(read(t, name)) {
			match := pairs.FindStringSubmatch(comment)
			if match == nil {
				continue
			}
			arguments++
			sentence := regexp.MustCompile(`[.;:,](\s|$)`).Split(match[1], 2)[0]
			named := false
			for _, candidate := range looksLikeName.FindAllString(sentence, -1) {
				if slices.Contains(files, candidate) || fileName.MatchString(candidate) && slices.ContainsFunc(files, func(file string) bool { return strings.HasSuffix(file, "/"+candidate) }) {
					continue
				}
				for _, part := range regexp.MustCompile(`\.|::`).Split(candidate, -1) {
					if !known[part] {
						t.Errorf("%s: %q: there is no %s", name, "pairs with "+sentence, candidate)
					}
				}
				named = true
			}
			for _, word := range wordStart.FindAllString(sentence, -1) {
				named = named || known[word] && !slices.Contains(plain, strings.ToLower(word))
			}
			if !named {
				t.Errorf("%s: %q names no partner", name, "pairs with "+sentence)
			}
		}
	}
	if arguments < 10 {
		t.Errorf("found %d arguments only: the test does not see them", arguments)
	}
}

// TestLicence: every file whose language has comments says in its first lines under which licence it is. Go files follow
// Go's custom and leave it to LICENSE.
func TestLicence(t *testing.T) {
	for _, name := range tree(t, code) {
		if path.Ext(name) == ".go" || path.Ext(name) == ".txt" && path.Base(name) != "CMakeLists.txt" {
			continue
		}
		head := strings.Join(strings.SplitN(read(t, name), "\n", 4)[:min(3, strings.Count(read(t, name), "\n"))], "\n")
		if !strings.Contains(head, "SPDX-License-Identifier: MIT") {
			t.Errorf("%s: no SPDX line at its head", name)
		}
	}
}

// long lists the files that may have more than 500 lines, with the reason.
var long = map[string]string{}

// TestSizes: a file that grows beyond 500 lines has lost its noun.
func TestSizes(t *testing.T) {
	for _, name := range tree(t, code) {
		lines := strings.Count(read(t, name), "\n")
		if lines > 500 && long[name] == "" {
			t.Errorf("%s has %d lines: split it along its nouns, or say here why not", name, lines)
		}
		if lines <= 500 && long[name] != "" {
			t.Errorf("%s has %d lines: its exception is not needed any more", name, lines)
		}
	}
	for name := range long {
		if !exists(name) {
			t.Errorf("%s is gone", name)
		}
	}
}

// TestWords: nothing in the project tells on which machine or by whom it was made, or points to papers that are not in it.
func TestWords(t *testing.T) {
	// The patterns are written so that they do not find themselves.
	words := map[string]*regexp.Regexp{
		"a machine's path":     regexp.MustCompile(`/(wor[k]|far[m]|roo[t]|hom[e]/\w+|tm[p]/\w+)/`),
		"who wrote it":         regexp.MustCompile(`(?i)\b(sub[-]?agen[t]s?|ai agen[t]|as an a[i]|claud[e]|ll[m]s?)\b`),
		"an issue's number":    regexp.MustCompile(`(?i)\bissue [0-9]+`),
		"a section of a draft": regexp.MustCompile(`\(?\bD(1[0-3]|[1-9])\b\)`),
		"something left to do": regexp.MustCompile(`\b(TOD[O]|FIXM[E]|XX[X])\b`),
	}
	for _, name := range tree(t, func(name string) bool { return name != "go.sum" && path.Ext(name) != ".bin" }) {
		for i, line := range strings.Split(read(t, name), "\n") {
			for what, pattern := range words {
				if found := pattern.FindString(line); found != "" {
					t.Errorf("%s:%d: %q is %s", name, i+1, found, what)
				}
			}
		}
	}
}

// TestNothingIsSkipped: a test that may be skipped is one that nobody misses.
func TestNothingIsSkipped(t *testing.T) {
	skip := regexp.MustCompile(`\b[tbf]\.Ski[p](Now|f)?\(|doctest::ski[p]|doctest::may_fai[l]|doctest::should_fai[l]|SKIP_RETURN_COD[E]|DISABLE[D] TRUE`)
	for _, name := range tree(t, code) {
		if found := skip.FindString(read(t, name)); found != "" {
			t.Errorf("%s: %s", name, found)
		}
	}
}
